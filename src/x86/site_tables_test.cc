#include "x86/site_tables.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::x86 {
namespace {

TEST(ReadAddressTable, SortsAndLeavesOutZerosAndRepetitions) {
  ByteWriter table(Endian::kLittle);
  for (const uint64_t address : {0x2000U, 0x1000U, 0U, 0x2000U}) table.U64(address);
  table.U32(7);  // half an entry
  EXPECT_EQ(ReadAddressTable({Svma(0x8000), table.view(), {}}),
            (std::vector<Svma>{Svma(0x1000), Svma(0x2000)}));
}

// In a position-independent module, of a COMDAT group too, the section itself holds zeros.
TEST(ReadAddressTable, AppliesRelativeRelocations) {
  ByteWriter table(Endian::kLittle);
  table.Zeros(16);
  const std::vector<RelativeRelocation> relocations = {
      {Svma(0x7ff8), Svma(0x9999)}, {Svma(0x8000), Svma(0x1140)}, {Svma(0x8008), Svma(0x1150)}};
  EXPECT_EQ(ReadAddressTable({Svma(0x8000), table.view(), relocations}),
            (std::vector<Svma>{Svma(0x1140), Svma(0x1150)}));
}

void PutSled(ByteWriter& out, uint64_t address, uint64_t function, uint8_t kind, uint8_t version) {
  out.U64(address);
  out.U64(function);
  out.U8(kind);
  out.U8(1);
  out.U8(version);
  out.Zeros(13);
}

TEST(ReadSledTable, ReadsEveryVersion) {
  for (const uint8_t version : {0, 1, 2}) {
    ByteWriter table(Endian::kLittle);
    const uint64_t start = 0x8000;
    // Version 2 counts each from its own place.
    PutSled(table, version == 2 ? 0x1010 - start : 0x1010,
            version == 2 ? 0x1000 - (start + 8) : 0x1000, 1, version);
    PutSled(table, version == 2 ? 0x1000 - (start + 32) : 0x1000,
            version == 2 ? 0x1000 - (start + 40) : 0x1000, 0, version);
    const SledTable read = ReadSledTable({Svma(start), table.view(), {}});
    ASSERT_EQ(read.sleds.size(), 2U) << int{version};
    EXPECT_EQ(read.sleds[0], (Sled{Svma(0x1000), Svma(0x1000), SledKind::kEntry, true, version}));
    EXPECT_EQ(read.sleds[1], (Sled{Svma(0x1010), Svma(0x1000), SledKind::kExit, true, version}));
  }
}

TEST(ReadSledTable, CountsWhatItDoesNotKnow) {
  ByteWriter table(Endian::kLittle);
  PutSled(table, 0x1000, 0x1000, 9, 0);
  PutSled(table, 0x1000, 0x1000, 0, 3);
  PutSled(table, 0x1000, 0x1000, 0, 0);
  table.Zeros(31);
  const SledTable read = ReadSledTable({Svma(0x8000), table.view(), {}});
  EXPECT_EQ(read.sleds.size(), 1U);
  EXPECT_EQ(read.unknown, 2U);
}

}  // namespace
}  // namespace stackreel::x86
