#include "perfdata/sample.h"

#include <fmt/format.h>

#include <array>
#include <bit>

#include "perfdata/record_size.h"
#include "perfdata/sample_layout.h"

namespace stackreel::perfdata {

namespace {

constexpr uint64_t kKnownSampleBits = (uint64_t{kSampleArch1} << 1) - 1;

}  // namespace

// ---- read_format ----

void ReadFormatWords::Decode(ByteReader& in, ReadValues& value, const WireScope& scope) {
  const uint64_t format = scope.attr == nullptr ? 0 : scope.attr->read_format;
  const bool group = (format & kReadGroup) != 0;
  ReadValue first;
  uint64_t count = 1;
  if (group) {
    count = in.U64();
  } else {
    first.value = in.U64();
  }
  value.time_enabled = (format & kReadTotalTimeEnabled) != 0 ? in.U64() : 0;
  value.time_running = (format & kReadTotalTimeRunning) != 0 ? in.U64() : 0;
  value.values.clear();
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    ReadValue element = first;
    if (group) element.value = in.U64();
    if ((format & kReadId) != 0) element.id = in.U64();
    if ((format & kReadLost) != 0) element.lost = in.U64();
    value.values.push_back(element);
  }
}

void ReadFormatWords::Encode(ByteWriter& out, const ReadValues& value, const WireScope& scope) {
  const uint64_t format = scope.attr == nullptr ? 0 : scope.attr->read_format;
  const bool group = (format & kReadGroup) != 0;
  const size_t count = group ? value.values.size() : 1;
  const auto element = [&](size_t i) {
    return i < value.values.size() ? value.values[i] : ReadValue();
  };
  out.U64(group ? count : element(0).value);
  if ((format & kReadTotalTimeEnabled) != 0) out.U64(value.time_enabled);
  if ((format & kReadTotalTimeRunning) != 0) out.U64(value.time_running);
  for (size_t i = 0; i < count; ++i) {
    if (group) out.U64(element(i).value);
    if ((format & kReadId) != 0) out.U64(element(i).id);
    if ((format & kReadLost) != 0) out.U64(element(i).lost);
  }
}

// ---- branches ----

namespace {

// Widths of perf_branch_entry's bitfields (mispred, predicted, in_tx, abort, cycles, type, spec,
// new_type, priv, reserved): from bit 0 up in a little-endian file, from bit 63 down in a big one.
constexpr std::array<unsigned, 10> kBranchFlagWidths = {1, 1, 1, 1, 16, 4, 2, 4, 3, 31};

}  // namespace

uint64_t BranchFlagsFromBigEndian(uint64_t word) {
  uint64_t flags = 0;
  unsigned at = 0;
  for (const unsigned width : kBranchFlagWidths) {
    const uint64_t mask = (uint64_t{1} << width) - 1;
    flags |= ((word >> (64 - at - width)) & mask) << at;
    at += width;
  }
  return flags;
}

uint64_t BranchFlagsToBigEndian(uint64_t flags) {
  uint64_t word = 0;
  unsigned at = 0;
  for (const unsigned width : kBranchFlagWidths) {
    const uint64_t mask = (uint64_t{1} << width) - 1;
    word |= ((flags >> at) & mask) << (64 - at - width);
    at += width;
  }
  return word;
}

void BranchStackEntry::Encode(ByteWriter& out, const Sample& value, const WireScope& scope) const {
  const uint64_t layout = scope.attr->branch_sample_type;
  const size_t count = value.branches.size();
  out.U64(count);
  if ((layout & kBranchHwIndex) != 0) out.U64(value.branch_hw_index);
  for (size_t i = 0; i < count; ++i) {
    const BranchEntry entry = value.branches[i];
    out.U64(entry.from);
    out.U64(entry.to);
    out.U64(out.endian() == Endian::kBig ? BranchFlagsToBigEndian(entry.flags) : entry.flags);
  }
  if ((layout & kBranchCounters) == 0) return;
  for (size_t i = 0; i < count; ++i) {
    out.U64(i < value.branch_counters.size() ? value.branch_counters[i] : 0);
  }
}

// ---- registers and stack ----

std::optional<uint64_t> SampledRegs::Get(unsigned reg) const {
  if (reg >= 64 || ((mask >> reg) & 1) == 0) return std::nullopt;
  const auto index = static_cast<size_t>(std::popcount(mask & ((uint64_t{1} << reg) - 1)));
  if (index >= values.size()) return std::nullopt;
  return values[index];
}

void DecodeRegisters(ByteReader& in, uint64_t mask, SampledRegs& value) {
  value.abi = in.U64();
  if (value.abi == 0) return;
  value.mask = mask;
  CountedView::DecodeWords(in, static_cast<uint64_t>(std::popcount(mask)), value.values);
  if ((value.abi & kRegsAbiSimd) == 0) return;
  value.vectors = in.U16();
  value.vector_words = in.U16();
  value.predicates = in.U16();
  value.predicate_words = in.U16();
  CountedView::DecodeWords(in,
                           uint64_t{value.vectors} * value.vector_words +
                               uint64_t{value.predicates} * value.predicate_words,
                           value.simd);
}

void EncodeRegisters(ByteWriter& out, const SampledRegs& value) {
  out.U64(value.abi);
  if (value.abi == 0) return;
  CountedView::EncodeWords(out, value.values);
  if ((value.abi & kRegsAbiSimd) == 0) return;
  out.U16(value.vectors);
  out.U16(value.vector_words);
  out.U16(value.predicates);
  out.U16(value.predicate_words);
  CountedView::EncodeWords(out, value.simd);
}

void StackDumpEntry::Encode(ByteWriter& out, const Sample& value, const WireScope&) const {
  const size_t whole = std::max<size_t>(value.stack_user_size, value.stack_user.size());
  out.U64(whole);
  if (whole == 0) return;
  out.Bytes(value.stack_user);
  out.Zeros(whole - value.stack_user.size());
  out.U64(value.stack_user.size());
}

// ---- the record ----

Status DecodeSample(const RawRecord& raw, const Attr& attr, Endian endian, Sample& out) {
  out = Sample();
  if (raw.bytes.size() < 8) {
    return std::unexpected(
        Error(ErrorKind::kDamaged, "SAMPLE record without a header").AtOffset(raw.file_offset));
  }
  ByteReader in(raw.payload(), endian);
  const WireScope scope{raw.misc, &attr};
  NoTrace trace;
  DecodeFields(in, out, scope, trace);
  out.present = attr.sample_type & kKnownSampleBits;
  if (in.ok()) return {};
  return std::unexpected(
      Error(ErrorKind::kDamaged,
            fmt::format("SAMPLE record of {} bytes is too short for its fields (sample_type {:#x})",
                        raw.bytes.size(), attr.sample_type))
          .AtOffset(raw.file_offset));
}

Status EncodeSampleInto(ByteWriter& out, const Sample& sample, uint16_t misc, const Attr& attr) {
  out.U32(static_cast<uint32_t>(RecordType::kSample));
  out.U16(misc);
  out.U16(0);
  if (std::max<uint64_t>(sample.stack_user_size, sample.raw.size()) <= kMaxRecordSize) {
    EncodeFields(out, sample, WireScope{misc, &attr});
    out.AlignTo(8);
    if (out.size() <= kMaxRecordSize) {
      out.PutAt(6, static_cast<uint16_t>(out.size()));
      return {};
    }
  }
  return Fail(
      ErrorKind::kUnsupported,
      fmt::format("SAMPLE record does not fit the {} bytes a record can have", kMaxRecordSize));
}

Result<std::vector<uint8_t>> EncodeSample(const Sample& sample, uint16_t misc, const Attr& attr,
                                          Endian endian) {
  ByteWriter out(endian);
  TRY(EncodeSampleInto(out, sample, misc, attr));
  return out.Take();
}

}  // namespace stackreel::perfdata
