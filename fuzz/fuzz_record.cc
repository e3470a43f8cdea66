// Any record of any event: decode → encode → decode gives the same, in both byte orders, and dump
// shows it.
//
// Input: u8 (bit 0: big-endian, bit 1: no sample_id_all), u64 sample_type, read_format,
// branch_sample_type, sample_regs_user, sample_regs_intr; then the record with its header, and what
// lies behind it.
#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "base/check.h"
#include "perfdata/dump.h"
#include "perfdata/kernel_record_layout.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace {

using namespace stackreel;            // NOLINT(google-build-using-namespace)
using namespace stackreel::perfdata;  // NOLINT(google-build-using-namespace)

RawRecord AsRaw(ByteView bytes, Endian endian) {
  RawRecord raw;
  raw.type = LoadUnaligned<uint32_t>(bytes.data(), endian);
  raw.misc = LoadUnaligned<uint16_t>(bytes.data() + 4, endian);
  const auto size = LoadUnaligned<uint16_t>(bytes.data() + 6, endian);
  raw.bytes = bytes.first(std::min<size_t>(std::max<size_t>(size, 8), bytes.size()));
  raw.extra = bytes.subspan(raw.bytes.size());
  raw.extra_size = raw.extra.size();
  return raw;
}

// Records near the limit may grow past it when their text is padded.
constexpr size_t kMayNotFit = 65535 - 512;

void TrySample(const RawRecord& raw, const Attr& attr, Endian endian) {
  Sample sample;
  if (!DecodeSample(raw, attr, endian, sample)) return;
  const auto encoded = EncodeSample(sample, raw.misc, attr, endian);
  if (!encoded) {
    CHECK(raw.bytes.size() > kMayNotFit);
    return;
  }
  const Endian other = endian == Endian::kLittle ? Endian::kBig : Endian::kLittle;
  Sample again;
  CHECK(DecodeSample(AsRaw(*encoded, endian), attr, endian, again).has_value());
  const auto swapped = EncodeSample(again, raw.misc, attr, other);
  CHECK(swapped.has_value());
  Sample back;
  CHECK(DecodeSample(AsRaw(*swapped, other), attr, other, back).has_value());
  const auto last = EncodeSample(back, raw.misc, attr, endian);
  CHECK(last.has_value() && *last == *encoded);
}

void TryRecord(const RawRecord& raw, const Attr& attr, Endian endian) {
  const auto record = DecodeRecord(raw, {endian, &attr});
  if (!record) return;
  // In one byte order or the other a bad one may look like the path that old kernels had in its
  // place.
  constexpr uint32_t kProtBits = 0x0300'0fff;  // asm-generic/mman-common.h and arm64's
  const auto* mmap2 = std::get_if<Mmap2>(&record->body);
  if (mmap2 != nullptr && (mmap2->prot & ~kProtBits) != 0) return;
  for (const Endian to : {Endian::kLittle, Endian::kBig}) {
    const auto encoded = EncodeRecord(*record, {to, &attr});
    if (!encoded) {
      CHECK(raw.bytes.size() > kMayNotFit);
      return;
    }
    const auto again = DecodeRecord(AsRaw(*encoded, to), {to, &attr});
    CHECK(again.has_value());
    CHECK(*again == *record);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ByteReader in(ByteView(data, size));
  const uint8_t flags = in.U8();
  const Endian endian = (flags & 1) != 0 ? Endian::kBig : Endian::kLittle;
  Attr attr;
  attr.sample_type = in.U64();
  attr.read_format = in.U64();
  attr.branch_sample_type = in.U64();
  attr.sample_regs_user = in.U64();
  attr.sample_regs_intr = in.U64();
  if ((flags & 2) == 0) attr.flags = kAttrSampleIdAll;
  if (!in.ok() || in.remaining() < 8) return 0;
  // A block of its own, so that a read past the record's end is seen.
  const std::vector<uint8_t> bytes(in.Rest().begin(), in.Rest().end());
  const RawRecord raw = AsRaw(bytes, endian);
  if (raw.record_type() == RecordType::kSample) {
    TrySample(raw, attr, endian);
  } else {
    TryRecord(raw, attr, endian);
  }
  DumpContext context;
  context.endian = endian;
  context.attr = &attr;
  DumpRecord(raw, context);
  return 0;
}
