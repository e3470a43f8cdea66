#include "dwarf/line_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dwarf/constants.h"
#include "dwarf/dwarf_writer.h"

namespace stackreel::dwarf {
namespace {

constexpr int8_t kLineBase = -5;
constexpr uint8_t kLineRange = 14;
constexpr uint8_t kOpcodeBase = 13;

struct Header {
  uint16_t version = 4;
  uint8_t maximum_operations = 1;
  uint8_t line_range = kLineRange;
};

// A program with directory 1 "/usr/include" and 2 "sub", and files a.c (of the compilation
// directory), b.h (of /usr/include), c.h (of sub), numbered from 1 before version 5, then from 0.
std::vector<uint8_t> Program(const Header& header, const std::function<void(ByteWriter&)>& body) {
  ByteWriter out(Endian::kLittle);
  out.U32(0);
  out.U16(header.version);
  if (header.version >= 5) out.U16(8);
  const size_t length_at = out.size();
  out.U32(0);
  out.U8(1);
  if (header.version >= 4) out.U8(header.maximum_operations);
  out.U8(1);
  out.U8(static_cast<uint8_t>(kLineBase));
  out.U8(header.line_range);
  out.U8(kOpcodeBase);
  for (const uint8_t count : {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1}) out.U8(count);
  const auto text = [&](std::string_view t) {
    out.Text(t);
    out.U8(0);
  };
  if (header.version >= 5) {
    out.U8(1);  // directories: a path
    out.U8(kLnctPath);
    out.U8(kFormString);
    out.U8(3);
    for (const char* directory : {"/comp", "/usr/include", "sub"}) text(directory);
    out.U8(2);  // files: a path and a directory
    out.U8(kLnctPath);
    out.U8(kFormString);
    out.U8(kLnctDirectoryIndex);
    out.U8(kFormUdata);
    out.U8(3);
    text("a.c");
    out.U8(0);
    text("b.h");
    out.U8(1);
    text("c.h");
    out.U8(2);
  } else {
    text("/usr/include");
    text("sub");
    out.U8(0);
    for (uint8_t i = 0; i < 3; ++i) {
      text(std::string(1, static_cast<char>('a' + i)) + (i == 0 ? ".c" : ".h"));
      out.U8(i);
      out.U16(0);
    }
    out.U8(0);
  }
  out.PutAt<uint32_t>(length_at, static_cast<uint32_t>(out.size() - length_at - 4));
  body(out);
  out.PutAt<uint32_t>(0, static_cast<uint32_t>(out.size() - 4));
  return out.Take();
}

void SetAddress(ByteWriter& out, uint64_t address) {
  out.U8(0);
  out.U8(9);
  out.U8(kLneSetAddress);
  out.U64(address);
}
void EndSequence(ByteWriter& out) {
  out.U8(0);
  out.U8(1);
  out.U8(kLneEndSequence);
}
void AdvancePc(ByteWriter& out, uint64_t by) {
  out.U8(kLnsAdvancePc);
  WriteUleb128(out, by);
}
uint8_t Special(uint8_t address, int line) {
  return static_cast<uint8_t>(line - kLineBase + kLineRange * address + kOpcodeBase);
}

class LineTableTest : public testing::Test {
 protected:
  LineTable& Read(const std::vector<uint8_t>& program, uint16_t version = 4) {
    UnitWriter units({.version = version, .address_size = 8});
    units.BeginUnit();
    units.Die(kTagCompileUnit, false, {{kAtCompDir, kFormString, 0, "/comp"}});
    units.EndUnit();
    DebugFileWriter file;
    file.Add(units).Add(".debug_line", program);
    file_ = *DebugSectionFile::Open(file.Take(), DebugSectionFile::Kind::kLinked);
    info_ = std::make_unique<DebugInfo>(file_, file_->sections(), counters_);
    info_->ReadRoot(info_->units()[0]);
    table_ = LineTable::Read(*info_, info_->units()[0], 0, &rows_left_);
    return table_;
  }
  // "file:line:column", or "" where there is no row.
  std::string At(uint64_t svma) {
    const LineRow* row = table_.Find(svma);
    if (row == nullptr) return "";
    return std::string(table_.FilePath(row->file)) + ":" + std::to_string(row->line) + ":" +
           std::to_string(row->column);
  }

  std::shared_ptr<const DebugSectionFile> file_;
  Counters counters_;
  std::unique_ptr<DebugInfo> info_;
  uint64_t rows_left_ = 1000;
  LineTable table_;
};

TEST_F(LineTableTest, TakesTheLastRowAtOrBeforeTheAddress) {
  for (const uint16_t version : {2, 3, 4, 5}) {
    Read(Program({.version = version},
                 [](ByteWriter& out) {
                   SetAddress(out, 0x1100);
                   out.U8(Special(0, 4));   // line 5
                   out.U8(Special(4, 1));   // 0x1104: line 6
                   out.U8(kLnsConstAddPc);  // + (255 - 13) / 14 = 17
                   out.U8(kLnsSetColumn);
                   out.U8(9);
                   out.U8(kLnsFixedAdvancePc);
                   out.U16(3);
                   out.U8(kLnsAdvanceLine);
                   out.U8(0x7f);      // -1
                   out.U8(kLnsCopy);  // 0x1118: line 5, column 9
                   AdvancePc(out, 0x10);
                   EndSequence(out);
                 }),
         version);
    EXPECT_FALSE(table_.damaged());
    const std::string file = version >= 5 ? "/usr/include/b.h" : "/comp/a.c";
    EXPECT_EQ(At(0x10ff), "");
    EXPECT_EQ(At(0x1100), file + ":5:0");
    EXPECT_EQ(At(0x1103), file + ":5:0");
    EXPECT_EQ(At(0x1104), file + ":6:0");
    EXPECT_EQ(At(0x1117), file + ":6:0");
    EXPECT_EQ(At(0x1118), file + ":5:9");
    EXPECT_EQ(At(0x1127), file + ":5:9");
    EXPECT_EQ(At(0x1128), "");
  }
}

TEST_F(LineTableTest, JoinsDirectories) {
  Read(Program({.version = 4}, [](ByteWriter&) {}));
  EXPECT_EQ(table_.FilePath(0), "");
  EXPECT_EQ(table_.FilePath(1), "/comp/a.c");
  EXPECT_EQ(table_.FilePath(2), "/usr/include/b.h");
  EXPECT_EQ(table_.FilePath(3), "/comp/sub/c.h");
  EXPECT_EQ(table_.FilePath(4), "");
  Read(Program({.version = 5}, [](ByteWriter&) {}), 5);
  EXPECT_EQ(table_.FilePath(0), "/comp/a.c");
  EXPECT_EQ(table_.FilePath(1), "/usr/include/b.h");
  EXPECT_EQ(table_.FilePath(2), "/comp/sub/c.h");
  EXPECT_EQ(table_.FilePath(UINT32_MAX), "");
}

TEST_F(LineTableTest, OfRowsAtOneAddressTheLastCounts) {
  Read(Program({}, [](ByteWriter& out) {
    SetAddress(out, 0x1100);
    out.U8(Special(0, 1));
    out.U8(Special(0, 1));
    out.U8(Special(0, 1));
    AdvancePc(out, 1);
    EndSequence(out);
  }));
  EXPECT_EQ(At(0x1100), "/comp/a.c:4:0");
}

TEST_F(LineTableTest, SortsRowsThatGoBack) {
  Read(Program({}, [](ByteWriter& out) {
    SetAddress(out, 0x1110);
    out.U8(Special(0, 1));
    SetAddress(out, 0x1100);
    out.U8(Special(0, 1));
    SetAddress(out, 0x1120);
    EndSequence(out);
  }));
  EXPECT_EQ(At(0x1100), "/comp/a.c:3:0");
  EXPECT_EQ(At(0x1110), "/comp/a.c:2:0");
}

// A function dropped by the linker: its sequence starts at 0.
TEST_F(LineTableTest, LeavesOutSequencesWhereNoCodeIs) {
  Read(Program({}, [](ByteWriter& out) {
    for (const uint64_t start : {0, 0x1800}) {
      SetAddress(out, start);
      out.U8(Special(0, 1));
      AdvancePc(out, 0x1810);
      EndSequence(out);
    }
  }));
  EXPECT_EQ(At(0x1100), "");
  EXPECT_EQ(At(0x1800), "/comp/a.c:2:0");
}

TEST_F(LineTableTest, CountsOperationsOfWideInstructions) {
  Read(Program({.maximum_operations = 3}, [](ByteWriter& out) {
    SetAddress(out, 0x1100);
    out.U8(Special(4, 1));  // one instruction and one operation on
    out.U8(Special(2, 1));  // two more: the third instruction
    AdvancePc(out, 3);
    EndSequence(out);
  }));
  EXPECT_EQ(At(0x1100), "");
  EXPECT_EQ(At(0x1101), "/comp/a.c:2:0");
  EXPECT_EQ(At(0x1102), "/comp/a.c:3:0");
}

TEST_F(LineTableTest, SkipsOpcodesItDoesNotKnow) {
  Read(Program({}, [](ByteWriter& out) {
    SetAddress(out, 0x1100);
    out.U8(12);  // DW_LNS_set_isa: one operand
    out.U8(0x05);
    out.U8(0);
    out.U8(4);
    out.U8(0x80);  // an extended opcode of a vendor
    out.U16(0);
    out.U8(0);
    out.U8(Special(0, 1));
    AdvancePc(out, 1);
    EndSequence(out);
  }));
  EXPECT_FALSE(table_.damaged());
  EXPECT_EQ(At(0x1100), "/comp/a.c:2:0");
}

TEST_F(LineTableTest, KeepsSequencesBeforeTheDamage) {
  const std::vector<uint8_t> whole = Program({}, [](ByteWriter& out) {
    for (const uint64_t start : {0x1100, 0x1200}) {
      SetAddress(out, start);
      out.U8(Special(0, 1));
      AdvancePc(out, 0x10);
      EndSequence(out);
    }
  });
  // The end of the second sequence cut off.
  std::vector<uint8_t> cut(whole.begin(), whole.end() - 3);
  StoreUnaligned<uint32_t>(cut.data(), static_cast<uint32_t>(cut.size() - 4), Endian::kLittle);
  Read(cut);
  EXPECT_TRUE(table_.damaged());
  EXPECT_EQ(At(0x1100), "/comp/a.c:2:0");
  EXPECT_EQ(At(0x1200), "");
  // A length that goes past the section.
  cut = whole;
  StoreUnaligned<uint32_t>(cut.data(), 0x10000, Endian::kLittle);
  Read(cut);
  EXPECT_TRUE(table_.damaged());
  EXPECT_EQ(At(0x1100), "");
}

TEST_F(LineTableTest, NoDivisionByALineRangeOfZero) {
  Read(Program({.line_range = 0}, [](ByteWriter& out) { out.U8(200); }));
  EXPECT_TRUE(table_.damaged());
  Read(Program({.line_range = 0}, [](ByteWriter& out) { out.U8(kLnsConstAddPc); }));
  EXPECT_TRUE(table_.damaged());
}

TEST_F(LineTableTest, StopsWhenRowsRunOut) {
  rows_left_ = 2;
  Read(Program({}, [](ByteWriter& out) {
    SetAddress(out, 0x1100);
    for (int i = 0; i < 10; ++i) out.U8(Special(1, 1));
    EndSequence(out);
  }));
  EXPECT_TRUE(table_.damaged());
  EXPECT_EQ(rows_left_, 0U);
}

// 2^64 - 1 entries of no bytes each.
TEST_F(LineTableTest, RefusesEntriesWithoutContent) {
  ByteWriter out(Endian::kLittle);
  out.U32(0);
  out.U16(5);
  out.U16(8);
  out.U32(100);
  for (const uint8_t byte : {1, 1, 1, 0, 1, 1}) out.U8(byte);
  out.U8(0);                      // no formats
  WriteUleb128(out, UINT64_MAX);  // directories
  out.Zeros(200);
  out.PutAt<uint32_t>(0, static_cast<uint32_t>(out.size() - 4));
  Read(out.Take(), 5);
  EXPECT_TRUE(table_.damaged());
}

}  // namespace
}  // namespace stackreel::dwarf
