#include "perfdata/record_layout.h"

#include <algorithm>
#include <bit>

namespace stackreel::perfdata {

// ---- build-ids ----

namespace {

BuildId FirstBytes(ByteView bytes, size_t size) {
  return BuildId(bytes.first(std::min({size, bytes.size(), BuildId::kMaxSize})));
}

void WritePadded(ByteWriter& out, const BuildId& id) {
  out.Bytes(id.bytes());
  out.Zeros(BuildId::kMaxSize - id.bytes().size());
}

}  // namespace

void Mmap2BuildId::Decode(ByteReader& in, BuildId& value, const WireScope&) {
  const uint8_t size = in.U8();
  in.Skip(3);
  value = FirstBytes(in.Bytes(BuildId::kMaxSize), size);
}

void Mmap2BuildId::Encode(ByteWriter& out, const BuildId& value, const WireScope&) {
  out.U8(static_cast<uint8_t>(value.bytes().size()));
  out.Zeros(3);
  WritePadded(out, value);
}

void HeaderBuildIdBytes::Decode(ByteReader& in, BuildId& value, const WireScope& scope) {
  const ByteView bytes = in.Bytes(BuildId::kMaxSize);
  const uint8_t size = in.U8();
  in.Skip(3);
  value = FirstBytes(bytes, (scope.misc & kMiscBuildIdSize) != 0 ? size : BuildId::kMaxSize);
}

void HeaderBuildIdBytes::Encode(ByteWriter& out, const BuildId& value, const WireScope& scope) {
  WritePadded(out, value);
  out.U8((scope.misc & kMiscBuildIdSize) != 0 ? static_cast<uint8_t>(value.bytes().size()) : 0);
  out.Zeros(3);
}

// ---- attr ----

void AttrInRecord::Decode(ByteReader& in, Attr& value, const WireScope&) {
  const ByteView rest = in.Rest();
  if (rest.size() < kAttrSizeFirst) return FailRead(in);
  Result<Attr> attr = DecodeAttr(rest, in.endian());
  if (!attr) return FailRead(in);
  in.Skip(attr->size);
  value = std::move(*attr);
}

void AttrInRecord::Encode(ByteWriter& out, const Attr& value, const WireScope&) {
  const bool fits = value.size >= AttrBytesUsed(value);
  out.Bytes(EncodeAttrSized(value, out.endian(), fits ? value.size : SmallestAttrSize(value)));
}

// ---- CPU maps ----

namespace {

enum CpuMapKind : uint16_t { kCpuList = 0, kCpuMask = 1, kCpuRange = 2 };

void DecodeMask(ByteReader& in, CpuMap& value) {
  const uint16_t words = in.U16();
  value.long_size = in.U16();
  if (value.long_size != 4 && value.long_size != 8) return FailRead(in);
  if (value.long_size == 8) in.Skip(4);
  if (words > in.remaining() / value.long_size) return FailRead(in);
  const uint32_t bits = value.long_size * 8u;
  for (uint32_t i = 0; i < words; ++i) {
    const uint64_t word = value.long_size == 8 ? in.U64() : in.U32();
    for (uint64_t left = word; left != 0; left &= left - 1) {
      value.cpus.push_back(i * bits + static_cast<uint32_t>(std::countr_zero(left)));
    }
  }
}

void EncodeMask(ByteWriter& out, const CpuMap& value) {
  const uint32_t bits = value.long_size == 4 ? 32 : 64;
  std::vector<uint64_t> words;
  for (const uint32_t cpu : value.cpus) {
    if (cpu / bits >= words.size()) words.resize(cpu / bits + 1);
    words[cpu / bits] |= uint64_t{1} << (cpu % bits);
  }
  out.U16(static_cast<uint16_t>(words.size()));
  out.U16(static_cast<uint16_t>(bits / 8));
  if (bits == 64) out.Zeros(4);
  for (const uint64_t word : words) {
    if (bits == 64) {
      out.U64(word);
    } else {
      out.U32(static_cast<uint32_t>(word));
    }
  }
}

}  // namespace

void CpuMapWords::Decode(ByteReader& in, CpuMap& value, const WireScope&) {
  value = CpuMap();
  value.kind = in.U16();
  switch (value.kind) {
    case kCpuList: {
      const uint16_t count = in.U16();
      if (count > in.remaining() / 2) return FailRead(in);
      for (uint16_t i = 0; i < count; ++i) value.cpus.push_back(in.U16());
      return;
    }
    case kCpuMask:
      return DecodeMask(in, value);
    case kCpuRange: {
      value.any_cpu = in.U8() != 0;
      in.Skip(1);
      const uint16_t first = in.U16();
      const uint16_t last = in.U16();
      if (first > last) return FailRead(in);
      value.cpus = {first, last};
      return;
    }
    default:
      return FailRead(in);
  }
}

void CpuMapWords::Encode(ByteWriter& out, const CpuMap& value, const WireScope&) {
  out.U16(value.kind);
  if (value.kind == kCpuMask) return EncodeMask(out, value);
  if (value.kind == kCpuRange) {
    out.U8(value.any_cpu ? 1 : 0);
    out.U8(0);
    out.U16(static_cast<uint16_t>(value.cpus.empty() ? 0 : value.cpus.front()));
    out.U16(static_cast<uint16_t>(value.cpus.empty() ? 0 : value.cpus.back()));
    return;
  }
  out.U16(static_cast<uint16_t>(value.cpus.size()));
  for (const uint32_t cpu : value.cpus) out.U16(static_cast<uint16_t>(cpu));
}

}  // namespace stackreel::perfdata
