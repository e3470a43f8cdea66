#include "perfdata/pac_mask.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace stackreel::perfdata {
namespace {

PacMask SomeMask() {
  PacMask mask;
  mask.pid = 7;
  mask.tid = 8;
  mask.time = 123456789;
  mask.enabled_keys = 0xf;
  mask.insn_mask = 0x007f000000000000;
  mask.data_mask = 0x007f000000000000;
  mask.source = 1;
  return mask;
}

std::vector<uint8_t> Encoded(uint32_t type, RecordBody body, Endian endian) {
  auto bytes = EncodeRecord(Record{type, 0, std::move(body), {}}, {.endian = endian});
  EXPECT_TRUE(bytes.has_value());
  return *bytes;
}

RawRecord Raw(const std::vector<uint8_t>& bytes, uint32_t type) {
  RawRecord raw;
  raw.type = type;
  raw.bytes = bytes;
  return raw;
}

TEST(PacMaskTest, IsCarriedByAnEventUpdateInBothByteOrders) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const EventUpdate update = MakePacMaskUpdate(SomeMask(), endian);
    EXPECT_EQ(update.bytes.size() % 8, 0u);
    EXPECT_EQ(PacMaskOf(update, endian), SomeMask());
    const auto bytes = Encoded(static_cast<uint32_t>(RecordType::kEventUpdate), update, endian);
    EXPECT_EQ(SideBandTime(Raw(bytes, static_cast<uint32_t>(RecordType::kEventUpdate)), endian),
              123456789u);
  }
}

TEST(PacMaskTest, HasItsTimeAsARecordOfItsOwnToo) {
  const auto bytes = Encoded(kRecordTypePacMask, SomeMask(), Endian::kLittle);
  EXPECT_EQ(SideBandTime(Raw(bytes, kRecordTypePacMask), Endian::kLittle), 123456789u);
}

TEST(PacMaskTest, CarriesWhatTheKernelsRecordSays) {
  const PacMask mask = MaskOfRecord({7, 8, 0x1e, 0x007f000000000000, 0x0070000000000000}, 99);
  EXPECT_EQ(mask.pid, 7u);
  EXPECT_EQ(mask.tid, 8u);
  EXPECT_EQ(mask.time, 99u);
  EXPECT_EQ(mask.enabled_keys, 0x1eu);
  EXPECT_EQ(mask.insn_mask, 0x007f000000000000u);
  EXPECT_EQ(mask.data_mask, 0x0070000000000000u);
  EXPECT_TRUE(IsOfKernel(mask.source));
}

TEST(PacMaskTest, TextSaysWhereItIsFrom) {
  EXPECT_EQ(MaskText(0xf, 0x70, 0x30, PacMask::kAskedOfCpu),
            "keys 0xf, instruction mask 0x70, data mask 0x30, asked of the CPU");
  EXPECT_EQ(MaskText(0, 0, 0, PacMask::kProgramOf32Bits),
            "keys not known, instruction mask 0x0, data mask 0x0, a program of 32 bits");
  EXPECT_EQ(MaskText(0, 0x70, 0x70, PacMask::kKernelRecord),
            "keys none, instruction mask 0x70, data mask 0x70, the kernel's record");
  EXPECT_EQ(MaskText(0x1f, 0x70, 0x70, PacMask::kProcFile),
            "keys 0x1f, instruction mask 0x70, data mask 0x70, the process's ptr_auth file");
  EXPECT_EQ(MaskText(0, 0, 0, 9), "keys not known, instruction mask 0x0, data mask 0x0, source 9");
}

TEST(PacMaskTest, OtherUpdatesAndShortOnesAreNone) {
  EventUpdate update = MakePacMaskUpdate(SomeMask(), Endian::kLittle);
  update.bytes.resize(16);
  EXPECT_EQ(PacMaskOf(update, Endian::kLittle), std::nullopt);
  const auto bytes =
      Encoded(static_cast<uint32_t>(RecordType::kEventUpdate), update, Endian::kLittle);
  EXPECT_EQ(
      SideBandTime(Raw(bytes, static_cast<uint32_t>(RecordType::kEventUpdate)), Endian::kLittle),
      std::nullopt);
  update = MakePacMaskUpdate(SomeMask(), Endian::kLittle);
  update.type = 3;
  EXPECT_EQ(PacMaskOf(update, Endian::kLittle), std::nullopt);
}

}  // namespace
}  // namespace stackreel::perfdata
