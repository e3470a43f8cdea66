#include "dwarf/range_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"

namespace stackreel::dwarf {
namespace {

using testing::ElementsAre;
using Pair = std::pair<uint64_t, uint64_t>;

// One unit with low_pc 0x1000, DW_AT_addr_base 0 and the given range lists.
class RangeListTest : public testing::Test {
 protected:
  // Ranges of the list at `value` in `section`, which is as version `version` has it.
  std::vector<Pair> Read(uint16_t version, ByteView section, FormValue value,
                         RangesRead expected = RangesRead::kGood) {
    UnitWriter units({.version = version, .address_size = 8});
    units.BeginUnit();
    units.Die(kTagCompileUnit, false, {{kAtLowPc, kFormAddr, 0x1000}});
    units.EndUnit();
    DebugFileWriter file;
    file.Add(units).Add(".debug_addr", addresses_.view());
    file.Add(version >= 5 ? ".debug_rnglists" : ".debug_ranges", section);
    auto opened = DebugSectionFile::Open(file.Take(), DebugSectionFile::Kind::kLinked);
    EXPECT_TRUE(opened);
    DebugInfo info(*opened, (*opened)->sections(), counters_);
    EXPECT_EQ(info.units().size(), 1U);
    info.ReadRoot(info.units()[0]);
    std::vector<AddressRange> ranges;
    EXPECT_EQ(ReadRangeList(info, info.units()[0], value, &entries_left_, &ranges), expected);
    std::vector<Pair> pairs;
    for (const AddressRange& range : ranges) pairs.emplace_back(range.lo, range.hi);
    return pairs;
  }

  ByteWriter addresses_{Endian::kLittle};
  Counters counters_;
  uint64_t entries_left_ = 100;
};

const FormValue kAtZero = {FormClass::kSectionOffset, 0, {}};

TEST_F(RangeListTest, PairsAreRelativeToTheBase) {
  ByteWriter list(Endian::kLittle);
  for (const uint64_t word :
       {uint64_t{0x10}, uint64_t{0x20}, UINT64_MAX, uint64_t{0x2000}, uint64_t{0x30},
        uint64_t{0x40}, uint64_t{0x50}, uint64_t{0x50}, uint64_t{0}, uint64_t{0}}) {
    list.U64(word);
  }
  EXPECT_THAT(Read(4, list.view(), kAtZero),
              ElementsAre(Pair(0x1010, 0x1020), Pair(0x2030, 0x2040)));
}

TEST_F(RangeListTest, ReadsEveryKindOfEntry) {
  for (const uint64_t address : {0x5000, 0x5100, 0x6000}) addresses_.U64(address);
  ByteWriter list(Endian::kLittle);
  const auto entry = [&](uint8_t kind, uint64_t a, uint64_t b) {
    list.U8(kind);
    WriteUleb128(list, a);
    WriteUleb128(list, b);
  };
  entry(kRleOffsetPair, 0x10, 0x20);
  list.U8(kRleBaseAddress);
  list.U64(0x2000);
  entry(kRleOffsetPair, 0x10, 0x20);
  list.U8(kRleBaseAddressx);
  list.U8(2);
  entry(kRleOffsetPair, 1, 2);
  entry(kRleStartxEndx, 0, 1);
  entry(kRleStartxLength, 1, 8);
  list.U8(kRleStartEnd);
  list.U64(0x7000);
  list.U64(0x7001);
  list.U8(kRleStartLength);
  list.U64(0x8000);
  WriteUleb128(list, 0x300);
  list.U8(kRleEndOfList);
  EXPECT_THAT(Read(5, list.view(), kAtZero),
              ElementsAre(Pair(0x1010, 0x1020), Pair(0x2010, 0x2020), Pair(0x6001, 0x6002),
                          Pair(0x5000, 0x5100), Pair(0x5100, 0x5108), Pair(0x7000, 0x7001),
                          Pair(0x8000, 0x8300)));
}

TEST_F(RangeListTest, AListByItsIndex) {
  ByteWriter list(Endian::kLittle);
  list.U32(8);  // offsets of lists 0 and 1, from here
  list.U32(12);
  list.U8(kRleEndOfList);
  list.U8(kRleEndOfList);
  list.U16(0);
  list.U8(kRleOffsetPair);
  list.U8(1);
  list.U8(2);
  list.U8(kRleEndOfList);
  EXPECT_THAT(Read(5, list.view(), {FormClass::kRangeListIndex, 0, {}}), ElementsAre());
  EXPECT_THAT(Read(5, list.view(), {FormClass::kRangeListIndex, 1, {}}),
              ElementsAre(Pair(0x1001, 0x1002)));
  Read(5, list.view(), {FormClass::kRangeListIndex, UINT64_MAX, {}}, RangesRead::kBad);
}

// What linkers leave of functions they drop: the highest address, or the one below.
TEST_F(RangeListTest, LeavesOutDroppedCode) {
  ByteWriter list(Endian::kLittle);
  list.U8(kRleBaseAddress);
  list.U64(UINT64_MAX);
  list.U8(kRleOffsetPair);
  WriteUleb128(list, 0x1011);
  WriteUleb128(list, 0x1021);
  list.U8(kRleStartLength);
  list.U64(UINT64_MAX - 1);
  WriteUleb128(list, 0x2000);
  list.U8(kRleEndOfList);
  EXPECT_THAT(Read(5, list.view(), kAtZero), ElementsAre());
}

TEST_F(RangeListTest, DamageEndsTheList) {
  ByteWriter list(Endian::kLittle);
  list.U8(kRleOffsetPair);
  list.U8(1);
  list.U8(2);
  list.U8(0x77);
  EXPECT_THAT(Read(5, list.view(), kAtZero, RangesRead::kBad), ElementsAre(Pair(0x1001, 0x1002)));
  EXPECT_THAT(Read(5, list.view().first(3), kAtZero, RangesRead::kBad),
              ElementsAre(Pair(0x1001, 0x1002)));
  Read(5, list.view(), {FormClass::kSectionOffset, UINT64_MAX, {}}, RangesRead::kBad);
  Read(4, list.view(), {FormClass::kSectionOffset, 1, {}}, RangesRead::kBad);
}

TEST_F(RangeListTest, StopsWhenEntriesRunOut) {
  ByteWriter list(Endian::kLittle);
  for (int i = 0; i < 10; ++i) {
    list.U8(kRleOffsetPair);
    list.U8(1);
    list.U8(2);
  }
  list.U8(kRleEndOfList);
  entries_left_ = 4;
  EXPECT_EQ(Read(5, list.view(), kAtZero, RangesRead::kTooMany).size(), 4U);
  EXPECT_EQ(entries_left_, 0U);
}

}  // namespace
}  // namespace stackreel::dwarf
