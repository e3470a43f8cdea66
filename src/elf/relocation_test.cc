#include "elf/relocation.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "base/byte_writer.h"
#include "elf/elf_writer.h"

namespace stackreel::elf {
namespace {

constexpr uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;

// Sections: .text 1, .text.far 2, .init.text 3, .data 4, .debug_info 5; a relocation table for 5.
class RelocationTest : public testing::Test {
 protected:
  void Begin(Class elf_class, Endian endian, uint16_t machine) {
    class_ = elf_class;
    endian_ = endian;
    writer_.emplace(elf_class, endian, machine, ET_REL);
    writer_->Add({.name = ".text", .flags = kCode, .bytes = std::vector<uint8_t>(0x21)});
    writer_->Add(
        {.name = ".text.far", .flags = kCode, .bytes = std::vector<uint8_t>(0x10), .align = 16});
    writer_->Add({.name = ".init.text", .flags = kCode, .bytes = std::vector<uint8_t>(0x10)});
    writer_->Add({.name = ".data", .flags = SHF_ALLOC, .bytes = std::vector<uint8_t>(8)});
    ByteWriter info(endian);
    info.U32(0x100);
    info.U32(0x200);
    info.U64(0x300);
    info.U64(0);
    writer_->Add({.name = ".debug_info", .bytes = info.Take()});
  }
  // Symbol 1: .text.far + 4; symbol 2: undefined.
  std::vector<uint8_t> Relocate(const std::vector<uint8_t>& table, bool with_addend) {
    writer_->Add({.name = ".rel",
                  .type = static_cast<uint32_t>(with_addend ? SHT_RELA : SHT_REL),
                  .bytes = table,
                  .info = 5});
    writer_->AddSymbols(SHT_SYMTAB, {{.name = "far", .value = 4, .section = 2},
                                     {.name = "elsewhere", .section = SHN_UNDEF}});
    file_ = writer_->Take();
    const auto image = Image::Parse(file_);
    EXPECT_TRUE(image);
    const RelocatableLayout layout(*image);
    not_done_ = 0;
    auto bytes = ReadRelocated(*image, *image->FindSection(".debug_info"), layout, not_done_);
    EXPECT_TRUE(bytes);
    return *bytes;
  }
  std::vector<uint8_t> Table64(const std::vector<std::array<uint64_t, 4>>& entries, bool rela) {
    ByteWriter out(endian_);
    for (const auto& [offset, type, symbol, addend] : entries) {
      out.U64(offset);
      out.U64(symbol << 32 | type);
      if (rela) out.U64(addend);
    }
    return out.Take();
  }
  uint32_t Word(const std::vector<uint8_t>& bytes, size_t at) {
    return LoadUnaligned<uint32_t>(bytes.data() + at, endian_);
  }
  uint64_t Double(const std::vector<uint8_t>& bytes, size_t at) {
    return LoadUnaligned<uint64_t>(bytes.data() + at, endian_);
  }

  Class class_ = Class::k64;
  Endian endian_ = Endian::kLittle;
  std::optional<ElfWriter> writer_;
  std::vector<uint8_t> file_;
  uint64_t not_done_ = 0;
};

TEST_F(RelocationTest, CodeThatStaysIsLaidOutFirst) {
  Begin(Class::k64, Endian::kLittle, EM_X86_64);
  Relocate({}, true);
  const auto image = Image::Parse(file_);
  const RelocatableLayout layout(*image);
  EXPECT_EQ(layout.AddressOf(1), 0U);
  EXPECT_EQ(layout.AddressOf(2), 0x30U);
  EXPECT_EQ(layout.AddressOf(3), 0x40U);
  EXPECT_EQ(layout.AddressOf(4), 0x50U);
  EXPECT_EQ(layout.AddressOf(5), 0U);
  EXPECT_EQ(layout.AddressOf(500), 0U);
  EXPECT_TRUE(layout.IsCode(2));
  EXPECT_FALSE(layout.IsCode(3));
  EXPECT_FALSE(layout.IsCode(4));
}

TEST_F(RelocationTest, X86_64) {
  Begin(Class::k64, Endian::kLittle, EM_X86_64);
  const auto bytes = Relocate(Table64({{0, R_X86_64_32, 1, 1},
                                       {4, R_X86_64_PC32, 1, 2},
                                       {8, R_X86_64_64, 1, UINT64_MAX},
                                       {16, R_X86_64_32S, 0, 0x77}},
                                      true),
                              true);
  EXPECT_EQ(Word(bytes, 0), 0x35U);
  EXPECT_EQ(Word(bytes, 4), 0x32U) << "relative to its place";
  EXPECT_EQ(Double(bytes, 8), 0x33U) << "what was there is no addend";
  EXPECT_EQ(Word(bytes, 16), 0x77U) << "symbol 0";
  EXPECT_EQ(not_done_, 0U);
}

TEST_F(RelocationTest, Aarch64BigEndianWithAddendsInPlace) {
  Begin(Class::k64, Endian::kBig, EM_AARCH64);
  const auto bytes =
      Relocate(Table64({{0, R_AARCH64_ABS32, 1, 0}, {8, R_AARCH64_ABS64, 1, 0}}, false), false);
  EXPECT_EQ(Word(bytes, 0), 0x134U);
  EXPECT_EQ(Double(bytes, 8), 0x334U);
}

TEST_F(RelocationTest, I386) {
  Begin(Class::k32, Endian::kLittle, EM_386);
  ByteWriter table(Endian::kLittle);
  table.U32(4);
  table.U32(1 << 8 | R_386_32);
  table.U32(0);
  table.U32(1 << 8 | R_386_PC32);
  const auto bytes = Relocate(table.Take(), false);
  EXPECT_EQ(Word(bytes, 4), 0x234U);
  EXPECT_EQ(Word(bytes, 0), 0x134U);
}

TEST_F(RelocationTest, WhatCannotBeDoneIsCountedAndLeft) {
  Begin(Class::k64, Endian::kLittle, EM_X86_64);
  const auto bytes = Relocate(Table64({{0, 200, 1, 0},           // no such type
                                       {22, R_X86_64_32, 1, 0},  // runs over the end
                                       {UINT64_MAX - 1, R_X86_64_64, 1, 0},
                                       {4, R_X86_64_32, 2, 0},     // not defined here
                                       {4, R_X86_64_32, 9999, 0},  // no such symbol
                                       {0, R_X86_64_NONE, 0, 0}},
                                      true),
                              true);
  EXPECT_EQ(not_done_, 5U);
  EXPECT_EQ(Word(bytes, 0), 0x100U);
  EXPECT_EQ(Word(bytes, 4), 0x200U);
}

}  // namespace
}  // namespace stackreel::elf
