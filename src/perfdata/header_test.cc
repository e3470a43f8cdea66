#include "perfdata/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::perfdata {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A big-endian header whose feature bitmap is `bitmap`.
std::vector<uint8_t> BigEndianHeader(const std::vector<uint8_t>& bitmap) {
  ByteWriter out(Endian::kBig);
  out.Text("2ELIFREP");
  out.U64(104);
  out.U64(128);
  out.Zeros(48);
  out.Bytes(bitmap);
  out.Zeros(32 - bitmap.size());
  return out.Take();
}

TEST(HeaderTest, EncodesWhatItParses) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    FileHeader header;
    header.endian = endian;
    header.attr_size = 128;
    header.attrs = {104, 256};
    header.data = {360, 4096};
    for (const uint32_t feature : {2, 3, 12, 31, 200}) header.SetFeature(feature);
    const std::vector<uint8_t> bytes = EncodeHeader(header);
    ASSERT_EQ(bytes.size(), kFileHeaderSize);
    const Result<FileHeader> parsed = ParseHeader(bytes);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->endian, endian);
    EXPECT_EQ(parsed->attr_size, 128u);
    EXPECT_EQ(parsed->attrs.offset, 104u);
    EXPECT_EQ(parsed->data.size, 4096u);
    EXPECT_THAT(parsed->FeatureList(), ElementsAre(2, 3, 12, 31, 200));
  }
}

TEST(HeaderTest, EncodesAPipesHeader) {
  FileHeader header;
  header.size = kPipeHeaderSize;
  const std::vector<uint8_t> bytes = EncodeHeader(header);
  ASSERT_EQ(bytes.size(), kPipeHeaderSize);
  ASSERT_TRUE(ParseHeader(bytes));
  EXPECT_TRUE(ParseHeader(bytes)->is_pipe());
}

// A big-endian bitmap is made of words of 64 or of 32 bits.
TEST(HeaderTest, GuessesTheWordOfABigEndianBitmap) {
  // BUILD_ID and HOSTNAME are bits 2 and 3.
  const auto wide = ParseHeader(BigEndianHeader({0, 0, 0, 0, 0, 0, 0, 0x0c}));
  ASSERT_TRUE(wide);
  EXPECT_THAT(wide->FeatureList(), ElementsAre(2, 3));
  const auto narrow = ParseHeader(BigEndianHeader({0, 0, 0, 0x0c}));
  ASSERT_TRUE(narrow);
  EXPECT_THAT(narrow->FeatureList(), ElementsAre(2, 3));
  // Without HOSTNAME: only EVENT_DESC, in the reading that gives a feature that exists.
  EXPECT_THAT(ParseHeader(BigEndianHeader({0, 0, 0, 0, 0, 0, 0x10, 0}))->FeatureList(),
              ElementsAre(12));
  EXPECT_THAT(ParseHeader(BigEndianHeader({0, 0, 0x10, 0}))->FeatureList(), ElementsAre(12));
  // Ours is 203. Of what nobody knows, 35 would be HOSTNAME in words of 32 bits.
  std::vector<uint8_t> ours(32);
  ours[3] = 0x08;
  ours[8 + 3] = 0x10;
  ours[24 + 6] = 0x08;
  EXPECT_THAT(ParseHeader(BigEndianHeader(ours))->FeatureList(), ElementsAre(35, 100, 203));
  // No reading makes sense: perf takes BUILD_ID alone.
  EXPECT_THAT(ParseHeader(BigEndianHeader({0x80, 0, 0, 0, 0x80, 0, 0, 0}))->FeatureList(),
              ElementsAre(2));
  EXPECT_THAT(ParseHeader(BigEndianHeader({}))->FeatureList(), IsEmpty());
}

TEST(HeaderTest, AcceptsHeadersWithoutFeatures) {
  std::vector<uint8_t> bytes = EncodeHeader({});
  StoreUnaligned<uint64_t>(bytes.data() + 8, 72, Endian::kLittle);
  bytes[72] = 0xff;  // is not the header's any more
  ASSERT_TRUE(ParseHeader(bytes));
  EXPECT_THAT(ParseHeader(bytes)->FeatureList(), IsEmpty());
}

TEST(HeaderTest, RefusesAbsurdSizes) {
  std::vector<uint8_t> bytes = EncodeHeader({});
  for (const uint64_t size : {uint64_t{0}, uint64_t{17}, uint64_t{71}, uint64_t{1} << 20}) {
    StoreUnaligned<uint64_t>(bytes.data() + 8, size, Endian::kLittle);
    const Result<FileHeader> parsed = ParseHeader(bytes);
    ASSERT_FALSE(parsed) << size;
    EXPECT_EQ(parsed.error().offset, 8u);
  }
}

TEST(FileHeader, RecordingsThatWereCompressedAsAWhole) {
  for (const auto& [magic, program] : {std::pair<std::string, std::string>("\x1f\x8b\x08", "gzip"),
                                       {"\xfd\x37zXZ", "xz"},
                                       {"\x28\xb5\x2f\xfd", "zstd"},
                                       {"BZh9", "bzip2"},
                                       {"\x04\x22\x4d\x18", "lz4"}}) {
    std::string bytes = magic;
    bytes.resize(200, '\x55');
    const auto header = ParseHeader(AsBytes(bytes));
    ASSERT_FALSE(header);
    EXPECT_EQ(header.error().cure, program + " -dc FILE | stackreel report -i -");
  }
}

}  // namespace
}  // namespace stackreel::perfdata
