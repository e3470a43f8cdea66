#include "x86/relative_relocations.h"

#include "base/byte_reader.h"

namespace stackreel::x86 {
namespace {

constexpr uint32_t kRelative = 8;  // R_X86_64_RELATIVE
constexpr uint64_t kRelaSize = 24;
constexpr uint64_t kPlaceSize = 8;
constexpr int kPlacesABitmap = 63;

}  // namespace

std::vector<RelativeRelocation> ReadRela(ByteView rela) {
  std::vector<RelativeRelocation> found;
  ByteReader reader(rela);
  while (reader.remaining() >= kRelaSize) {
    const Svma place(reader.U64());
    const auto type = static_cast<uint32_t>(reader.U64());
    const Svma value(reader.U64());
    if (type == kRelative) found.push_back({place, value});
  }
  return found;
}

std::vector<RelativeRelocation> ReadRelr(ByteView relr, const LoadedBytes& loaded) {
  std::vector<RelativeRelocation> found;
  const auto add = [&](Svma place) {
    const ByteView bytes = loaded(place);
    if (bytes.size() < kPlaceSize) return;
    found.push_back({place, Svma(LoadUnaligned<uint64_t>(bytes.data(), Endian::kLittle))});
  };
  ByteReader reader(relr);
  Svma next;  // where the next bitmap begins
  while (reader.remaining() >= kPlaceSize) {
    const uint64_t word = reader.U64();
    if ((word & 1) == 0) {
      add(Svma(word));
      next = Svma(word + kPlaceSize);
      continue;
    }
    for (int i = 0; i < kPlacesABitmap; ++i) {
      if ((word >> (i + 1) & 1) != 0) add(next + static_cast<uint64_t>(i) * kPlaceSize);
    }
    next = next + kPlacesABitmap * kPlaceSize;
  }
  return found;
}

}  // namespace stackreel::x86
