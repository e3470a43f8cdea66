#include "tracedata/columns.h"

#include <array>
#include <cstddef>
#include <cstring>

#include "base/check.h"

namespace stackreel::tracedata {

namespace {

constexpr size_t kWord = sizeof(uint32_t);
constexpr size_t kWords = 3;  // of a row of the input
constexpr size_t kRowBytes = kWords * kWord;
constexpr size_t kGroup =
    64;  // rows that are split at a time: of a fixed number compilers make SIMD

// All rows' bytes of one place stand together, `rows` apart from those of the next place.
template <size_t kFixedCount>
void SplitGroup(const uint8_t* words, size_t count, std::array<uint32_t, kWords>& before,
                uint8_t* out, size_t rows) {
  if (kFixedCount != 0) count = kFixedCount;
  uint32_t changes[kWords][kGroup];
  for (size_t i = 0; i < count; ++i) {
    for (size_t k = 0; k < kWords; ++k) {
      const auto word = LoadUnaligned<uint32_t>(words + (i * kRowBytes) + (k * kWord),  //
                                                Endian::kLittle);
      const uint32_t change = word - before[k];
      before[k] = word;
      changes[k][i] = (change << 1) ^ (uint32_t{0} - (change >> 31));
    }
  }
  for (size_t k = 0; k < kWords; ++k) {
    for (size_t byte = 0; byte < kWord; ++byte) {
      uint8_t* const to = out + ((kWord * k + byte) * rows);
      for (size_t i = 0; i < count; ++i) {
        to[i] = static_cast<uint8_t>(changes[k][i] >> (8 * byte));
      }
    }
  }
}

}  // namespace

void SplitIntoColumns(ByteView bytes, std::span<uint8_t> out) {
  CHECK(out.size() == bytes.size());
  const size_t rows = bytes.size() / kRowBytes;
  std::array<uint32_t, kWords> before = {};
  size_t i = 0;
  for (; i + kGroup <= rows; i += kGroup) {
    SplitGroup<kGroup>(bytes.data() + (i * kRowBytes), kGroup, before, out.data() + i, rows);
  }
  SplitGroup<0>(bytes.data() + (i * kRowBytes), rows - i, before, out.data() + i, rows);
  const size_t done = rows * kRowBytes;
  if (done != bytes.size()) {
    std::memcpy(out.data() + done, bytes.data() + done, bytes.size() - done);
  }
}

void JoinColumns(ByteView columns, std::span<uint8_t> out) {
  CHECK(out.size() == columns.size());
  const size_t rows = columns.size() / kRowBytes;
  std::array<uint32_t, kWords> before = {};
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < kWords; ++k) {
      const uint8_t* const at = columns.data() + (kWord * k * rows) + i;
      uint32_t change = 0;
      for (size_t byte = 0; byte < kWord; ++byte) change |= uint32_t{at[byte * rows]} << (8 * byte);
      before[k] += (change >> 1) ^ (uint32_t{0} - (change & 1));
      StoreUnaligned(out.data() + (i * kRowBytes) + (k * kWord), before[k], Endian::kLittle);
    }
  }
  const size_t done = rows * kRowBytes;
  if (done != out.size()) std::memcpy(out.data() + done, columns.data() + done, out.size() - done);
}

}  // namespace stackreel::tracedata
