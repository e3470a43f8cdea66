#include "session/pointer_mask.h"

#include <bit>
#include <charconv>
#include <string_view>

#include "base/byte_reader.h"

namespace stackreel::session {
namespace {

// simpleperf's FEAT_META_INFO: "key\0value\0" pairs (record_file.h).
constexpr uint32_t kSimpleperfMetaInfo = 129;

std::optional<PointerMask> MaskFromHeader(ByteView bytes, Endian endian) {
  // u32 version, u32 source, u64 enabled_keys, u64 insn_mask, u64 data_mask
  ByteReader reader(bytes, endian);
  const uint32_t version = reader.U32();
  reader.Skip(4 + 8);
  PointerMask mask;
  mask.insn = reader.U64();
  mask.data = reader.U64();
  mask.source = MaskSource::kHeader;
  if (!reader.ok() || version == 0) return std::nullopt;
  return mask;
}

std::optional<PointerMask> MaskFromMetaInfo(ByteView bytes) {
  ByteReader reader(bytes);
  while (!reader.AtEnd()) {
    const std::string_view key = reader.CString();
    std::string_view value = reader.CString();
    if (!reader.ok()) break;
    if (key != "arm64_pac_mask") continue;
    if (value.starts_with("0x") || value.starts_with("0X")) value.remove_prefix(2);
    uint64_t mask = 0;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), mask, 16);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) break;
    return PointerMask{mask, mask, MaskSource::kSimpleperf};
  }
  return std::nullopt;
}

}  // namespace

const char* MaskSourceName(MaskSource source) {
  switch (source) {
    case MaskSource::kNone:
      return "nowhere";
    case MaskSource::kSample:
      return "the sample";
    case MaskSource::kKernel:
      return "the kernel";
    case MaskSource::kSideBand:
      return "the process's record";
    case MaskSource::kHeader:
      return "the recorder's CPU";
    case MaskSource::kSimpleperf:
      return "simpleperf's header";
    case MaskSource::kHighestMapping:
      return "the highest mapping";
  }
  return "nowhere";
}

bool LeavesAddresses(const PointerMask& mask, Avma highest_end) {
  if (highest_end.value == 0) return true;
  const int bits = std::bit_width(highest_end.value - 1);
  if (bits >= 55) return true;  // in the kernel's half, as vsyscall's page is
  return (mask.insn & ((uint64_t{1} << bits) - 1)) == 0;
}

std::optional<PointerMask> MaskFromHighestMapping(Avma end) {
  constexpr uint64_t kBelowBit55 = (uint64_t{1} << 55) - 1;
  if (end.value == 0 || end.value - 1 > kBelowBit55) return std::nullopt;
  const int bits = std::bit_width(end.value - 1);
  const uint64_t mask = kBelowBit55 & ~((uint64_t{1} << bits) - 1);
  return PointerMask{mask, mask, MaskSource::kHighestMapping};
}

std::optional<PointerMask> MaskFromFeatures(const perfdata::Features& features, Endian endian) {
  const auto ours = features.raw.find(static_cast<uint32_t>(perfdata::Feature::kStackreelPacMask));
  if (ours != features.raw.end()) {
    if (auto mask = MaskFromHeader(ours->second, endian)) return mask;
  }
  const auto meta = features.raw.find(kSimpleperfMetaInfo);
  if (meta != features.raw.end()) return MaskFromMetaInfo(meta->second);
  return std::nullopt;
}

}  // namespace stackreel::session
