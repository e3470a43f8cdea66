#include "symbolize/symbol_table.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "elf/elf_writer.h"

namespace stackreel::symbolize {
namespace {

using elf::ElfWriter;
using Bytes = std::vector<uint8_t>;
using NewSymbol = ElfWriter::NewSymbol;

std::string NameAt(const SymbolTable& table, uint64_t svma) {
  const SymbolRange* symbol = table.Find(Svma(svma));
  return symbol == nullptr ? "" : std::string(symbol->name);
}

// A table of a file with one .text (section 1, from 0x1000) and one .rodata.str (section 2).
SymbolTable TableOf(const std::vector<NewSymbol>& symbols, uint16_t machine = EM_X86_64) {
  ElfWriter writer(elf::Class::k64, Endian::kLittle, machine);
  writer.Add({.name = ".text", .addr = 0x1000, .bytes = Bytes(0x1000)});
  writer.Add({.name = ".init_array", .addr = 0x3000, .bytes = Bytes(0x100)});
  writer.AddSymbols(SHT_SYMTAB, symbols);
  const Bytes file = writer.Take();
  const auto image = elf::Image::Parse(file);
  EXPECT_TRUE(image);
  return SymbolTable::FromElf(&*image, nullptr);
}

TEST(SymbolTableTest, FindsBySize) {
  const auto table = TableOf(
      {{.name = "b", .value = 0x1020, .size = 0x10}, {.name = "a", .value = 0x1000, .size = 0x10}});
  EXPECT_EQ(NameAt(table, 0xfff), "");
  EXPECT_EQ(NameAt(table, 0x1000), "a");
  EXPECT_EQ(NameAt(table, 0x100f), "a");
  EXPECT_EQ(NameAt(table, 0x1010), "") << "a gap belongs to nobody";
  EXPECT_EQ(NameAt(table, 0x102f), "b");
  EXPECT_EQ(NameAt(table, 0x1030), "");
}

TEST(SymbolTableTest, SymbolWithoutSizeReachesToTheNextOrPastItsPage) {
  const auto table = TableOf({{.name = "a", .value = 0x1000},
                              {.name = "b", .value = 0x1020, .size = 8},
                              {.name = "c", .value = 0x1040}});
  EXPECT_EQ(NameAt(table, 0x101f), "a");
  EXPECT_EQ(NameAt(table, 0x1028), "");
  EXPECT_EQ(NameAt(table, 0x2fff), "c");
  EXPECT_EQ(NameAt(table, 0x3000), "");
}

TEST(SymbolTableTest, InnermostOfNestedSymbols) {
  const auto table = TableOf({{.name = "outer", .value = 0x1000, .size = 0x100},
                              {.name = "one", .value = 0x1010, .size = 0x10},
                              {.name = "two", .value = 0x1030, .size = 0x20},
                              {.name = "inner", .value = 0x1038, .size = 8}});
  EXPECT_EQ(NameAt(table, 0x100f), "outer");
  EXPECT_EQ(NameAt(table, 0x101f), "one");
  EXPECT_EQ(NameAt(table, 0x1020), "outer");
  EXPECT_EQ(NameAt(table, 0x103f), "inner");
  EXPECT_EQ(NameAt(table, 0x1040), "two");
  EXPECT_EQ(NameAt(table, 0x1050), "outer");
  EXPECT_EQ(NameAt(table, 0x1100), "");
}

TEST(SymbolTableTest, SurvivesBeingMoved) {
  auto table = TableOf({{.name = "f", .value = 0x1000, .size = 0x10}});
  const SymbolTable moved = std::move(table);
  EXPECT_EQ(NameAt(moved, 0x1000), "f");
}

TEST(SymbolTableTest, ReadsKallsyms) {
  const std::string_view text =
      "ffffffff81000000 T _stext\n"
      "ffffffff81000100 t do_one\n"
      "ffffffff81000200 r data_is_not_text\n"
      "ffffffffc0001000 t mod_fn\t[mod]\n"
      "ffffffffc0002000 T mod_end [mod]\n"
      "bad line\n";
  const auto kernel = SymbolTable::FromKallsyms(text, "");
  EXPECT_EQ(NameAt(kernel, 0xffffffff810001ff), "do_one");
  EXPECT_EQ(kernel.symbols().size(), 2);
  const auto module = SymbolTable::FromKallsyms(text, "mod");
  EXPECT_EQ(NameAt(module, 0xffffffffc0001fff), "mod_fn");
}

TEST(SymbolTableTest, ReadsPerfMapsAndCountsBadLines) {
  uint64_t bad = 0;
  const auto table = SymbolTable::FromPerfMap(
      "1000 10 LazyCompile:~f /a b.js:3\n0x2000 0x20 g\nxyz 1 h\n3000 10\n\n", &bad);
  EXPECT_EQ(NameAt(table, 0x100f), "LazyCompile:~f /a b.js:3");
  EXPECT_EQ(NameAt(table, 0x201f), "g");
  EXPECT_EQ(bad, 3);
}

TEST(DemangleTest, CxxNamesWithParameters) {
  EXPECT_EQ(Demangle("_ZN3foo3barEiPKc"), "foo::bar(int, char const*)");
  EXPECT_EQ(Demangle("main"), "main");
  EXPECT_EQ(Demangle("i"), "i") << "not \"int\"";
  EXPECT_EQ(Demangle("_Zbad"), "_Zbad");
}

}  // namespace
}  // namespace stackreel::symbolize
