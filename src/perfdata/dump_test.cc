#include "perfdata/dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "perfdata/features.h"
#include "perfdata/field_text.h"
#include "perfdata/pac_mask.h"
#include "perfdata/sample.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

RawRecord RecordAt1a8(const std::vector<uint8_t>& bytes, Endian endian) {
  RawRecord raw = synthetic::AsRaw(bytes, endian);
  raw.file_offset = 0x1a8;
  return raw;
}

TEST(DumpRecord, ShowsEachFieldWithItsOffset) {
  Attr attr;
  attr.sample_type = kSampleTid | kSampleTime;
  attr.flags = kAttrSampleIdAll;
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kMmap);
  record.misc = 1;
  record.body = Mmap{0xffffffff, 0, 0xffffffff81000000, 0x1000, 0x20, "[kernel]_text"};
  record.sample_id = SampleId{attr.sample_type, 7, 8, 9, 0, 0, 0, 0};
  const std::vector<std::string> expected = {
      "0x1a8 MMAP misc 0x1 (kernel) size 72",
      "  +0x0008 pid: -1",
      "  +0x000c tid: 0",
      "  +0x0010 addr: 0xffffffff81000000",
      "  +0x0018 len: 0x1000",
      "  +0x0020 pgoff: 0x20",
      "  +0x0028 filename: \"[kernel]_text\"",
      "  sample_id",
      "  +0x0038 pid: 7",
      "  +0x003c tid: 8",
      "  +0x0040 time: 9",
  };
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const auto bytes = *EncodeRecord(record, {endian, &attr});
    DumpContext context;
    context.endian = endian;
    context.attr = &attr;
    EXPECT_EQ(DumpRecord(RecordAt1a8(bytes, endian), context), expected);
  }
}

TEST(DumpRecord, ShowsASample) {
  Attr attr;
  attr.sample_type = kSampleIp | kSampleCallchain | kSampleRegsUser | kSampleBranchStack;
  attr.sample_regs_user = 0x180;
  ByteWriter out(Endian::kLittle);
  out.U32(9);
  out.U32(0x4002);
  for (const uint64_t word : {uint64_t{0x401000}, uint64_t{2}, kContextUser, uint64_t{0x401000},
                              uint64_t{1}, uint64_t{0x10}, uint64_t{0x20}, uint64_t{0x52},
                              uint64_t{2}, uint64_t{0x7ffe}, uint64_t{0x401000}}) {
    out.U64(word);
  }
  const std::vector<uint8_t> bytes = out.Take();
  DumpContext context;
  context.attr = &attr;
  context.arch = "x86_64";
  EXPECT_THAT(
      DumpRecord(RecordAt1a8(bytes, Endian::kLittle), context),
      ElementsAre("0x1a8 SAMPLE misc 0x4002 (user, exact ip) size 96", "  +0x0008 ip: 0x401000",
                  "  +0x0010 callchain: 2", "            [0] 0xfffffffffffffe00 (user)",
                  "            [1] 0x401000", "  +0x0028 branches: 1",
                  "            [0] 0x10 -> 0x20 predicted cycles=5",
                  "  +0x0048 regs_user: abi 2, mask 0x180", "            sp 0x7ffe",
                  "            ip 0x401000"));
}

TEST(DumpRecord, ShowsWhatADamagedRecordStillHas) {
  Attr attr;
  attr.sample_type = kSampleIp | kSampleTid | kSampleTime;
  ByteWriter out(Endian::kLittle);
  out.U64(9);
  out.U64(0x401000);
  out.U32(5);
  const std::vector<uint8_t> bytes = out.Take();
  DumpContext context;
  context.attr = &attr;
  EXPECT_THAT(
      DumpRecord(RecordAt1a8(bytes, Endian::kLittle), context),
      ElementsAre("0x1a8 SAMPLE misc 0x0 size 20", "  +0x0008 ip: 0x401000", "  +0x0010 pid: 5",
                  "  +0x0014 tid: missing", HasSubstr("damaged: SAMPLE record of 20 bytes")));
}

TEST(DumpRecord, ShowsAnAttrFieldByField) {
  Attr attr;
  attr.size = 64;
  attr.sample_type = kSampleIp | kSampleTime;
  attr.flags = kAttrInherit | (uint64_t{2} << 15);
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kHeaderAttr);
  record.body = HeaderAttr{attr, {5, 6}};
  const auto bytes = *EncodeRecord(record, {});
  const auto lines = DumpRecord(RecordAt1a8(bytes, Endian::kLittle), {});
  EXPECT_THAT(lines, Contains("  +0x0020 attr.sample_type: 0x5 IP|TIME"));
  EXPECT_THAT(lines, Contains("  +0x0030 attr.flags: 0x10002 inherit, precise_ip 2"));
  EXPECT_THAT(lines, Contains("  +0x0040 attr.config1: 0x0"));
  EXPECT_THAT(lines, Not(Contains(HasSubstr("config2"))));  // not in 64 bytes
  EXPECT_EQ(lines.back(), "  +0x0048 ids: 5 6");
}

TEST(DumpRecord, ShowsTheFeatureInARecord) {
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kHeaderFeature);
  record.body = HeaderFeature{10, {1, 2, 0, 0, 0, 0, 0, 0}};
  const auto bytes = *EncodeRecord(record, {});
  EXPECT_EQ(DumpRecord(RecordAt1a8(bytes, Endian::kLittle), {}).back(), "    memory: 513 kB");
}

TEST(DumpRecord, ShowsTheMaskInARecordAndWhereItIsFrom) {
  PacMask mask;
  mask.pid = mask.tid = 7;
  mask.insn_mask = mask.data_mask = 0x007f000000000000;
  mask.source = PacMask::kAskedOfCpu;
  const std::string expected =
      "    pointer authentication of process 7: keys not known, instruction mask 0x7f000000000000, "
      "data mask 0x7f000000000000, asked of the CPU";
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    Record record;
    record.type = static_cast<uint32_t>(RecordType::kEventUpdate);
    record.body = MakePacMaskUpdate(mask, endian);
    const auto update = *EncodeRecord(record, {.endian = endian});
    EXPECT_EQ(DumpRecord(RecordAt1a8(update, endian), {.endian = endian, .arch = {}}).back(),
              expected);
    record.type = kRecordTypePacMask;
    record.body = mask;
    const auto own = *EncodeRecord(record, {.endian = endian});
    EXPECT_EQ(DumpRecord(RecordAt1a8(own, endian), {.endian = endian, .arch = {}}).back(),
              expected);
  }
}

TEST(DumpRecord, ShowsTheKernelsRecordOfMasks) {
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kPtrAuth);
  record.body = PtrAuth{7, 8, 0x1d, 0x007f000000000000, 0x0070000000000000};
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const auto bytes = *EncodeRecord(record, {.endian = endian});
    EXPECT_THAT(
        DumpRecord(RecordAt1a8(bytes, endian), {.endian = endian, .arch = {}}),
        ElementsAre("0x1a8 PTR_AUTH misc 0x0 size 40", "  +0x0008 pid: 7", "  +0x000c tid: 8",
                    "  +0x0010 enabled_keys: 0x1d", "  +0x0018 insn_mask: 0x7f000000000000",
                    "  +0x0020 data_mask: 0x70000000000000",
                    "    pointer authentication of process 7, thread 8: keys 0x1d, instruction "
                    "mask 0x7f000000000000, data mask 0x70000000000000, the kernel's record"));
  }
  auto cut = *EncodeRecord(record, {});
  cut.resize(32);
  StoreUnaligned<uint16_t>(cut.data() + 6, 32, Endian::kLittle);
  EXPECT_THAT(DumpRecord(RecordAt1a8(cut, Endian::kLittle), {}).back(), HasSubstr("damaged"));
}

TEST(DumpRecord, ShowsTheFeatureInAnUpdate) {
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kEventUpdate);
  record.body = MakeFeatureUpdate(200, EncodePacMask(0, 0, 0, Endian::kLittle), Endian::kLittle);
  const auto bytes = *EncodeRecord(record, {});
  EXPECT_EQ(DumpRecord(RecordAt1a8(bytes, Endian::kLittle), {}).back(),
            "    pointer authentication: keys not known, instruction mask 0x0, data mask 0x0, "
            "asked of the CPU");
}

TEST(DumpRecord, ShowsBytesOfWhatItDoesNotKnow) {
  const std::vector<uint8_t> bytes = {0x2c, 1, 0, 0, 0, 0, 12, 0, 0x41, 0x42, 0, 0xff};
  DumpContext context;
  context.raw_bytes = true;
  EXPECT_THAT(
      DumpRecord(RecordAt1a8(bytes, Endian::kLittle), context),
      ElementsAre("0x1a8 TYPE_300 misc 0x0 size 12", "  +0x0008 payload: 4 bytes: 41 42 00 ff",
                  "  0000: 2c 01 00 00 00 00 0c 00 41 42 00 ff              ,.......AB.."));
}

TEST(MiscText, ReadsTheBitsAsTheTypeMeansThem) {
  const auto text = [](RecordType type, uint16_t misc) {
    return MiscText(static_cast<uint32_t>(type), misc);
  };
  EXPECT_EQ(text(RecordType::kComm, kMiscCommExec), "exec");
  EXPECT_EQ(text(RecordType::kSwitch, kMiscSwitchOut | kMiscSwitchOutPreempt), "out, preempted");
  EXPECT_EQ(text(RecordType::kMmap2, 2 | kMiscMmapBuildId), "user, build-id");
  EXPECT_EQ(text(RecordType::kLost, 0), "");
}

TEST(FieldText, QuotesWhatIsNotPrintable) {
  EXPECT_EQ(QuotedText("a\"b\\c\n\x7f"), "\"a\\\"b\\\\c\\x0a\\x7f\"");
  EXPECT_EQ(NumberRanges({3, 1, 2, 8}), "1-3,8");
  EXPECT_EQ(NumberRanges({}), "");
  EXPECT_EQ(SampleTypeNames(kSampleIp | (uint64_t{1} << 40)), "IP|bit40");
}

}  // namespace
}  // namespace stackreel::perfdata
