#include "dwarf/package_index.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/byte_writer.h"
#include "dwarf/constants.h"

namespace stackreel::dwarf {
namespace {

struct NewRow {
  uint64_t id = 0;
  std::vector<uint32_t> offsets;
  std::vector<uint32_t> sizes;
};

// An index of 4 slots, filled by the open addressing that the format prescribes.
std::vector<uint8_t> WriteIndex(uint16_t version, const std::vector<uint32_t>& kinds,
                                const std::vector<NewRow>& rows) {
  ByteWriter out(Endian::kLittle);
  out.U16(version);
  out.U16(0);
  out.U32(static_cast<uint32_t>(kinds.size()));
  out.U32(static_cast<uint32_t>(rows.size()));
  out.U32(4);
  std::vector<uint64_t> ids(4);
  std::vector<uint32_t> numbers(4);
  for (uint32_t i = 0; i < rows.size(); ++i) {
    uint64_t slot = rows[i].id & 3;
    while (numbers[slot] != 0) slot = (slot + (((rows[i].id >> 32) & 3) | 1)) & 3;
    ids[slot] = rows[i].id;
    numbers[slot] = i + 1;
  }
  for (const uint64_t id : ids) out.U64(id);
  for (const uint32_t number : numbers) out.U32(number);
  for (const uint32_t kind : kinds) out.U32(kind);
  for (const NewRow& row : rows) {
    for (const uint32_t offset : row.offsets) out.U32(offset);
  }
  for (const NewRow& row : rows) {
    for (const uint32_t size : row.sizes) out.U32(size);
  }
  return out.Take();
}

class PackageIndexTest : public testing::Test {
 protected:
  PackageIndexTest() : bytes_(100) {
    package_.info = package_.abbrev = package_.str_offsets = package_.rnglists = bytes_;
    package_.str = bytes_;
  }
  std::vector<uint8_t> bytes_;
  DebugSections package_;
};

TEST_F(PackageIndexTest, FindsThePartsOfEachUnit) {
  const std::vector<uint8_t> bytes =
      WriteIndex(5, {kSectInfo, kSectAbbrev, kSectStrOffsets, kSectRnglists},
                 {{.id = 0x100000001, .offsets = {0, 10, 20, 30}, .sizes = {5, 6, 7, 8}},
                  {.id = 0x200000001, .offsets = {5, 50, 60, 70}, .sizes = {95, 1, 2, 3}}});
  const auto index = PackageIndex::Parse(bytes, Endian::kLittle);
  ASSERT_TRUE(index);
  const auto first = index->Find(0x100000001, package_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->info.size(), 5U);
  EXPECT_EQ(first->abbrev.data(), bytes_.data() + 10);
  EXPECT_EQ(first->rnglists.size(), 8U);
  EXPECT_EQ(first->str.size(), 100U);
  const auto second = index->Find(0x200000001, package_);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->info.data(), bytes_.data() + 5);
  EXPECT_EQ(second->info.size(), 95U);
  EXPECT_FALSE(index->Find(0x300000001, package_));
}

TEST_F(PackageIndexTest, ColumnEightOfVersionTwoIsNotRangeLists) {
  const std::vector<uint8_t> bytes =
      WriteIndex(2, {kSectInfo, kSectRnglists}, {{.id = 7, .offsets = {0, 0}, .sizes = {9, 9}}});
  const auto index = PackageIndex::Parse(bytes, Endian::kLittle);
  ASSERT_TRUE(index);
  const auto parts = index->Find(7, package_);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->info.size(), 9U);
  EXPECT_TRUE(parts->rnglists.empty());
}

TEST_F(PackageIndexTest, PartsOutOfBoundsAreNotFound) {
  for (const NewRow& row : {NewRow{.id = 7, .offsets = {50}, .sizes = {51}},
                            NewRow{.id = 7, .offsets = {UINT32_MAX}, .sizes = {2}}}) {
    const std::vector<uint8_t> bytes = WriteIndex(5, {kSectInfo}, {row});
    const auto index = PackageIndex::Parse(bytes, Endian::kLittle);
    ASSERT_TRUE(index);
    EXPECT_FALSE(index->Find(7, package_));
  }
}

TEST_F(PackageIndexTest, RefusesOtherVersionsAndEveryCut) {
  EXPECT_FALSE(PackageIndex::Parse(WriteIndex(3, {}, {}), Endian::kLittle));
  const std::vector<uint8_t> bytes =
      WriteIndex(5, {kSectInfo}, {{.id = 7, .offsets = {1}, .sizes = {2}}});
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(PackageIndex::Parse(ByteView(bytes).first(size), Endian::kLittle)) << size;
  }
}

TEST_F(PackageIndexTest, HugeCountsAreRefused) {
  ByteWriter out(Endian::kLittle);
  out.U32(2);
  out.U32(UINT32_MAX);
  out.U32(UINT32_MAX);
  out.U32(0);
  EXPECT_FALSE(PackageIndex::Parse(out.view(), Endian::kLittle));
}

}  // namespace
}  // namespace stackreel::dwarf
