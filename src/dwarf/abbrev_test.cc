#include "dwarf/abbrev.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"

namespace stackreel::dwarf {
namespace {

// Each with DW_AT_name as string, DW_AT_low_pc as addr, or neither.
void Add(ByteWriter& out, uint64_t code, const std::vector<std::pair<uint16_t, uint16_t>>& specs) {
  WriteUleb128(out, code);
  out.U8(kTagSubprogram);
  out.U8(1);
  for (const auto& [name, form] : specs) {
    WriteUleb128(out, name);
    WriteUleb128(out, form);
    if (form == kFormImplicitConst) WriteUleb128(out, 5);
  }
  out.U16(0);
}

TEST(AbbrevTableTest, FindsByCodeInAnyOrder) {
  ByteWriter bytes;
  Add(bytes, 700, {{kAtName, kFormString}});
  Add(bytes, 2, {{kAtLowPc, kFormAddr}, {kAtCallLine, kFormImplicitConst}});
  Add(bytes, 1, {});
  bytes.U8(0);
  uint64_t steps = 100;
  const AbbrevTable table = AbbrevTable::Read(ByteReader(bytes.view()), kDwarf5, &steps);
  EXPECT_FALSE(table.damaged());
  EXPECT_EQ(steps, 100U - 6);
  ASSERT_NE(table.Find(2), nullptr);
  EXPECT_EQ(table.Find(2)->fixed_size, 8U);
  EXPECT_EQ(table.AttributesOf(*table.Find(2))[1].implicit, 5);
  ASSERT_NE(table.Find(700), nullptr);
  EXPECT_EQ(table.Find(700)->fixed_size, Abbrev::kVaries);
  EXPECT_EQ(table.Find(1)->fixed_size, 0U);
  EXPECT_EQ(table.Find(0), nullptr);
  EXPECT_EQ(table.Find(3), nullptr);
  EXPECT_EQ(table.Find(UINT64_MAX), nullptr);
}

TEST(AbbrevTableTest, KeepsWhatIsWholeOfATableCutShort) {
  ByteWriter bytes;
  Add(bytes, 1, {{kAtName, kFormString}});
  Add(bytes, 2, {{kAtName, kFormString}});
  uint64_t steps = 100;
  const ByteView cut = bytes.view().first(bytes.size() - 1);
  const AbbrevTable table = AbbrevTable::Read(ByteReader(cut), kDwarf5, &steps);
  EXPECT_TRUE(table.damaged());
  EXPECT_NE(table.Find(1), nullptr);
  EXPECT_EQ(table.Find(2), nullptr);
}

TEST(AbbrevTableTest, StopsWhenStepsRunOut) {
  ByteWriter bytes;
  for (uint64_t code = 1; code <= 10; ++code) Add(bytes, code, {{kAtName, kFormString}});
  bytes.U8(0);
  uint64_t steps = 5;
  const AbbrevTable table = AbbrevTable::Read(ByteReader(bytes.view()), kDwarf5, &steps);
  EXPECT_TRUE(table.damaged());
  EXPECT_NE(table.Find(2), nullptr);
  EXPECT_EQ(table.Find(3), nullptr);
}

TEST(AbbrevTableTest, ReadsOneOnly) {
  ByteWriter bytes;
  Add(bytes, 1, {{kAtName, kFormString}});
  Add(bytes, 2, {{kAtLowPc, kFormAddr}});
  Add(bytes, 3, {});
  bytes.U8(0);
  uint64_t steps = 100;
  const AbbrevTable table = AbbrevTable::ReadOne(ByteReader(bytes.view()), kDwarf5, 2, &steps);
  EXPECT_EQ(table.Find(1), nullptr);
  ASSERT_NE(table.Find(2), nullptr);
  EXPECT_EQ(table.AttributesOf(*table.Find(2))[0].name, kAtLowPc);
  const AbbrevTable none = AbbrevTable::ReadOne(ByteReader(bytes.view()), kDwarf5, 9, &steps);
  EXPECT_EQ(none.Find(9), nullptr);
  EXPECT_EQ(none.Find(3), nullptr);
}

}  // namespace
}  // namespace stackreel::dwarf
