#include "perfdata/record.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::perfdata {
namespace {

RawRecord AsRaw(const std::vector<uint8_t>& bytes, Endian endian) {
  RawRecord raw;
  raw.type = LoadUnaligned<uint32_t>(bytes.data(), endian);
  raw.misc = LoadUnaligned<uint16_t>(bytes.data() + 4, endian);
  const auto size = LoadUnaligned<uint16_t>(bytes.data() + 6, endian);
  raw.bytes = ByteView(bytes).first(size);
  raw.extra = ByteView(bytes).subspan(size);
  raw.extra_size = raw.extra.size();
  return raw;
}

Record Make(RecordType type, RecordBody body, uint16_t misc = 0) {
  return Record{static_cast<uint32_t>(type), misc, std::move(body), std::nullopt};
}

const BuildId& SomeBuildId() {
  static const BuildId id = *BuildId::FromHex("00112233445566778899aabbccddeeff01020304");
  return id;
}

std::vector<Record> OneOfEachKernelRecord() {
  using enum RecordType;
  return {
      Make(kMmap, Mmap{1, 2, 0x400000, 0x1000, 3, "/bin/cat"}),
      Make(kMmap2, Mmap2{1, 2, 0x7f0000000000, 0x1000, 0, 8, 1, 99, 7, {}, 5, 2, "/lib/libc.so"}),
      Make(kMmap2,
           Mmap2{1, 2, 0x7f0000000000, 0x1000, 0, 0, 0, 0, 0, SomeBuildId(), 5, 2, "/lib/libc.so"},
           kMiscMmapBuildId),
      Make(kMmap2, Mmap2{1, 2, 3, 4, 0, 0, 0, 0, 0, *BuildId::FromHex("aabbccdd"), 5, 2, "//anon"},
           kMiscMmapBuildId),
      Make(kLost, Lost{11, 12}),
      Make(kComm, Comm{1, 2, "seven77"}, kMiscCommExec),
      Make(kComm, Comm{1, 2, "eight888"}),
      Make(kExit, Task{1, 2, 3, 4, 5}),
      Make(kFork, Task{1, 2, 3, 4, 5}),
      Make(kThrottle, Throttle{1, 2, 3}),
      Make(kUnthrottle, Throttle{1, 2, 3}),
      Make(kRead, Read{1, 2, ReadValues{0, 0, {ReadValue{9, 8, 7}}}}),
      Make(kAux, Aux{1, 2, 3}),
      Make(kItraceStart, ItraceStart{1, 2}),
      Make(kLostSamples, LostSamples{3}),
      Make(kSwitch, Switch{}, kMiscSwitchOut),
      Make(kSwitchCpuWide, SwitchCpuWide{1, 2}),
      Make(kNamespaces, Namespaces{1, 2, {{3, 4}, {5, 6}}}),
      Make(kKsymbol, Ksymbol{0xffffffffc0000000, 0x40, 1, 1, "bpf_prog_1"}),
      Make(kBpfEvent, BpfEvent{1, 0, 5, {1, 2, 3, 4, 5, 6, 7, 8}}),
      Make(kCgroup, Cgroup{5, "/system.slice"}),
      Make(kTextPoke, TextPoke{0xffffffff81000000, {1, 2, 3, 4, 5}, {6, 7}}),
      Make(kAuxOutputHwId, AuxOutputHwId{0x1234}),
      Make(kCallchainDeferred, CallchainDeferred{77, {kContextUser, 0x401000, 0x402000}}),
  };
}

Attr TrailerAttr() {
  Attr attr;
  attr.sample_type = kSampleTid | kSampleTime | kSampleId | kSampleStreamId | kSampleCpu |
                     kSampleIdentifier | kSampleIp;
  attr.flags = kAttrSampleIdAll;
  attr.read_format = kReadId | kReadLost;
  return attr;
}

TEST(Record, KernelRecordsGoThroughBothByteOrdersWithAndWithoutTrailer) {
  const Attr attr = TrailerAttr();
  Attr no_trailer = attr;
  no_trailer.flags = 0;
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const bool trailer : {false, true}) {
      const RecordContext context{endian, trailer ? &attr : &no_trailer};
      for (Record record : OneOfEachKernelRecord()) {
        if (trailer) {
          record.sample_id = SampleId{attr.sample_type & ~kSampleIp, 1, 2, 3, 4, 5, 6, 7};
        }
        const auto bytes = EncodeRecord(record, context);
        ASSERT_TRUE(bytes.has_value()) << record.type;
        EXPECT_EQ(bytes->size() % 8, 0u) << record.type;
        const auto decoded = DecodeRecord(AsRaw(*bytes, endian), context);
        ASSERT_TRUE(decoded.has_value()) << decoded.error().ToString();
        EXPECT_TRUE(*decoded == record) << RecordTypeName(record.type);
        EXPECT_EQ(*EncodeRecord(*decoded, context), *bytes);
      }
    }
  }
}

TEST(Record, TrailerIsReadFromTheEnd) {
  const Attr attr = TrailerAttr();
  Record record = Make(RecordType::kComm, Comm{1, 2, "x"});
  record.sample_id = SampleId{attr.sample_type & ~kSampleIp, 1, 2, 3, 4, 5, 6, 7};
  const auto bytes = *EncodeRecord(record, {Endian::kLittle, &attr});
  // IDENTIFIER is the last word, CPU two u32 before it, in either byte order.
  EXPECT_EQ(LoadUnaligned<uint64_t>(&bytes[bytes.size() - 8], Endian::kLittle), 4u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(&bytes[bytes.size() - 16], Endian::kLittle), 6u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(&bytes[bytes.size() - 12], Endian::kLittle), 7u);
  const auto big = *EncodeRecord(record, {Endian::kBig, &attr});
  EXPECT_EQ(LoadUnaligned<uint32_t>(&big[big.size() - 16], Endian::kBig), 6u);
}

TEST(Record, EveryCutIsAnErrorOrAShorterRecordNeverMore) {
  const Attr attr = TrailerAttr();
  const RecordContext context{Endian::kLittle, &attr};
  for (const Record& record : OneOfEachKernelRecord()) {
    const auto bytes = *EncodeRecord(record, context);
    for (size_t size = 0; size < bytes.size(); ++size) {
      RawRecord raw = AsRaw(bytes, Endian::kLittle);
      // Its own heap block, so that a sanitizer sees a read past the end.
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
      raw.bytes = cut;
      raw.file_offset = 0x40;
      const auto decoded = DecodeRecord(raw, context);
      if (!decoded) {
        EXPECT_EQ(decoded.error().kind, ErrorKind::kDamaged);
        EXPECT_EQ(decoded.error().offset, 0x40u);
      }
    }
  }
}

}  // namespace
}  // namespace stackreel::perfdata
