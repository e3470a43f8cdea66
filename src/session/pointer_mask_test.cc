#include "session/pointer_mask.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::session {
namespace {

perfdata::Features WithRaw(uint32_t feature, std::vector<uint8_t> bytes) {
  perfdata::Features features;
  features.raw[feature] = std::move(bytes);
  return features;
}

std::vector<uint8_t> HeaderFeature(uint32_t version, uint64_t insn, Endian endian) {
  ByteWriter writer(endian);
  writer.U32(version);
  writer.U32(0);
  writer.U64(0xf);
  writer.U64(insn);
  writer.U64(0x1234);
  return writer.Take();
}

// The sizes of virtual addresses that Linux has, and their masks.
TEST(PointerMaskTest, HighestMappingTellsTheSizeOfAddresses) {
  EXPECT_EQ(MaskFromHighestMapping(Avma(uint64_t{1} << 36))->insn, 0x007ffff000000000U);
  EXPECT_EQ(MaskFromHighestMapping(Avma(uint64_t{1} << 39))->insn, 0x007fff8000000000U);
  EXPECT_EQ(MaskFromHighestMapping(Avma(uint64_t{1} << 48))->insn, 0x007f000000000000U);
  EXPECT_EQ(MaskFromHighestMapping(Avma(0xffffb7ff1000))->insn, 0x007f000000000000U);
  EXPECT_EQ(MaskFromHighestMapping(Avma(0xffffb7ff1000))->source, MaskSource::kHighestMapping);
}

TEST(PointerMaskTest, NoMappingNoMask) {
  EXPECT_FALSE(MaskFromHighestMapping(Avma(0)));
  EXPECT_FALSE(MaskFromHighestMapping(Avma(UINT64_MAX)));
}

TEST(PointerMaskTest, LeavesAddressesBelowItsLowestBit) {
  const PointerMask mask{0x007f000000000000, 0x007f000000000000, MaskSource::kSideBand};
  EXPECT_TRUE(LeavesAddresses(mask, Avma(0)));
  EXPECT_TRUE(LeavesAddresses(mask, Avma(uint64_t{1} << 48)));
  EXPECT_FALSE(LeavesAddresses(mask, Avma((uint64_t{1} << 48) + 4096)));
  // Of vsyscall's page, or of a damaged record: UBSan looks at the shift.
  EXPECT_TRUE(LeavesAddresses(mask, Avma(0xffffffffff601000)));
  EXPECT_TRUE(LeavesAddresses(mask, Avma(UINT64_MAX)));
}

TEST(PointerMaskTest, OurFeatureInBothByteOrders) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const auto features = WithRaw(200, HeaderFeature(1, 0x007f000000000000, endian));
    const auto mask = MaskFromFeatures(features, endian);
    ASSERT_TRUE(mask);
    EXPECT_EQ(mask->insn, 0x007f000000000000U);
    EXPECT_EQ(mask->data, 0x1234U);
    EXPECT_EQ(mask->source, MaskSource::kHeader);
  }
}

TEST(PointerMaskTest, ShortOrUnknownFeatureIsNone) {
  auto bytes = HeaderFeature(1, 7, Endian::kLittle);
  bytes.pop_back();
  EXPECT_FALSE(MaskFromFeatures(WithRaw(200, bytes), Endian::kLittle));
  EXPECT_FALSE(
      MaskFromFeatures(WithRaw(200, HeaderFeature(0, 7, Endian::kLittle)), Endian::kLittle));
}

std::vector<uint8_t> MetaInfo(std::string_view text) {
  const ByteView bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST(PointerMaskTest, SimpleperfMetaInfo) {
  using namespace std::string_view_literals;
  const auto found = MaskFromFeatures(
      WithRaw(129, MetaInfo("clockid\0monotonic\0arm64_pac_mask\0000x7f8000000000\0"sv)),
      Endian::kLittle);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->insn, 0x7f8000000000U);
  EXPECT_EQ(found->source, MaskSource::kSimpleperf);
  EXPECT_FALSE(MaskFromFeatures(WithRaw(129, MetaInfo("arm64_pac_mask\0zz\0"sv)), Endian::kLittle));
  EXPECT_FALSE(MaskFromFeatures(WithRaw(129, MetaInfo("arm64_pac_mask\0"sv)), Endian::kLittle));
  EXPECT_FALSE(MaskFromFeatures({}, Endian::kLittle));
}

}  // namespace
}  // namespace stackreel::session
