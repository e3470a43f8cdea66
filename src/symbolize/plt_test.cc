#include "symbolize/plt.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_writer.h"
#include "elf/elf_writer.h"
#include "symbolize/file_table.h"

namespace stackreel::symbolize {
namespace {

using elf::ElfWriter;

constexpr uint64_t kPlt = 0x1000;
constexpr uint64_t kGot = 0x4000;

struct Relocation {
  uint64_t slot = 0;
  uint32_t type = 0;
  uint32_t symbol = 0;  // 1 puts, 2 exit, 3 _ZN1a1bEv
  uint64_t addend = 0;
};

struct CodeSection {
  std::string name;
  uint64_t addr = 0;
  Bytes bytes;
};

FileTable TableOf(uint16_t machine, const std::vector<CodeSection>& sections,
                  const std::vector<Relocation>& relocations) {
  ElfWriter writer(elf::Class::k64, Endian::kLittle, machine);
  for (const CodeSection& section : sections) {
    writer.Add({.name = section.name, .addr = section.addr, .bytes = section.bytes});
  }
  ByteWriter table;
  for (const Relocation& relocation : relocations) {
    table.U64(relocation.slot);
    table.U64(uint64_t{relocation.symbol} << 32 | relocation.type);
    table.U64(relocation.addend);
  }
  writer.Add({.name = ".rela.plt", .type = SHT_RELA, .bytes = table.Take()});
  writer.AddSymbols(SHT_DYNSYM,
                    {{.name = "puts", .section = SHN_UNDEF},
                     {.name = "exit", .section = SHN_UNDEF},
                     {.name = "_ZN1a1bEv", .section = SHN_UNDEF},
                     {.name = "memcpy", .value = 0x2000, .size = 8, .type = STT_GNU_IFUNC}});
  return TableOfFile(writer.Take());
}

// "OPCODE disp32(%rip)" at `at`, `opcode` being all bytes before the displacement.
Bytes RipRelative(const Bytes& opcode, uint64_t at, uint64_t slot, size_t size) {
  ByteWriter out;
  out.Bytes(opcode);
  out.U32(static_cast<uint32_t>(slot - (at + opcode.size() + 4)));
  out.Zeros(size - out.size());
  return out.Take();
}
Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes out;
  for (const Bytes& part : parts) out.insert(out.end(), part.begin(), part.end());
  return out;
}
const Bytes kJump = {0xff, 0x25};
const Bytes kEndbrBndJump = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25};

TEST(PltTest, StubsAreNamedByTheirSlotsNotTheirOrder) {
  // ".plt": a header, then two stubs whose relocations stand the other way round.
  const Bytes plt = Join({RipRelative({0xff, 0x35}, kPlt, kGot + 8, 16),
                          RipRelative(kJump, kPlt + 16, kGot + 24, 16),
                          RipRelative(kJump, kPlt + 32, kGot + 32, 16)});
  const auto table =
      TableOf(EM_X86_64, {{".plt", kPlt, plt}},
              {{kGot + 32, R_X86_64_JUMP_SLOT, 1}, {kGot + 24, R_X86_64_JUMP_SLOT, 3}});
  EXPECT_EQ(NameAt(table, kPlt), "");
  EXPECT_EQ(NameAt(table, kPlt + 16), "_ZN1a1bEv@plt");
  EXPECT_EQ(NameAt(table, kPlt + 31), "_ZN1a1bEv@plt");
  EXPECT_EQ(NameAt(table, kPlt + 47), "puts@plt");
  EXPECT_EQ(NameAt(table, kPlt + 48), "");
}

TEST(PltTest, EightByteStubsOfPltGot) {
  const Bytes code =
      Join({RipRelative(kJump, kPlt, kGot, 8), RipRelative(kJump, kPlt + 8, kGot + 8, 8)});
  const auto table = TableOf(EM_X86_64, {{".plt.got", kPlt, code}},
                             {{kGot, R_X86_64_GLOB_DAT, 2}, {kGot + 8, R_X86_64_GLOB_DAT, 1}});
  EXPECT_EQ(NameAt(table, kPlt + 7), "exit@plt");
  EXPECT_EQ(NameAt(table, kPlt + 8), "puts@plt");
}

TEST(PltTest, SecondPltOfIndirectBranchTracking) {
  const Bytes lazy = {0xf3, 0x0f, 0x1e, 0xfa, 0x68, 1, 0, 0, 0, 0xf2, 0xe9, 0, 0, 0, 0, 0x90};
  const auto table =
      TableOf(EM_X86_64,
              {{".plt", kPlt, Join({Bytes(16, 0x90), lazy})},
               {".plt.sec", kPlt + 0x100, RipRelative(kEndbrBndJump, kPlt + 0x100, kGot, 16)}},
              {{kGot + 8, R_X86_64_JUMP_SLOT, 2}, {kGot, R_X86_64_JUMP_SLOT, 1}});
  EXPECT_EQ(NameAt(table, kPlt + 0x10f), "puts@plt");
  EXPECT_EQ(NameAt(table, kPlt), "");
  EXPECT_EQ(NameAt(table, kPlt + 16), "puts@plt") << "binds relocation 1";
}

TEST(PltTest, RetpolineStubs) {
  const auto table =
      TableOf(EM_X86_64, {{".plt", kPlt, RipRelative({0x4c, 0x8b, 0x1d}, kPlt, kGot, 32)}},
              {{kGot, R_X86_64_JUMP_SLOT, 1}});
  EXPECT_EQ(NameAt(table, kPlt + 31), "puts@plt");
}

TEST(PltTest, IfuncsByTheirResolvers) {
  const Bytes code =
      Join({RipRelative(kJump, kPlt, kGot, 16), RipRelative(kJump, kPlt + 16, kGot + 8, 16)});
  const auto table =
      TableOf(EM_X86_64, {{".plt", kPlt, code}},
              {{kGot, R_X86_64_IRELATIVE, 0, 0x2000}, {kGot + 8, R_X86_64_IRELATIVE, 0, 0x2100}});
  EXPECT_EQ(NameAt(table, kPlt), "memcpy@plt");
  EXPECT_EQ(NameAt(table, kPlt + 16), "@plt") << "a resolver without a name";
}

TEST(PltTest, Arm64Stubs) {
  const auto stub = [](uint64_t at, uint64_t slot, bool bti) {
    const auto pages = static_cast<uint32_t>((slot >> 12) - (at >> 12));
    ByteWriter out;
    if (bti) out.U32(0xd503245f);
    out.U32(0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5);  // adrp x16
    out.U32(0xf9400211 | static_cast<uint32_t>((slot & 0xfff) / 8) << 10);  // ldr x17
    out.U32(0x91000210 | static_cast<uint32_t>(slot & 0xfff) << 10);        // add x16
    out.U32(0xd61f0220);                                                    // br x17
    if (bti) out.U32(0xd503201f);
    return out.Take();
  };
  const Bytes header(32, 0x1f);
  const auto table =
      TableOf(EM_AARCH64,
              {{".plt", 0x11000,
                Join({header, stub(0x11020, 0x4018, false), stub(0x11030, 0x20ff8, false)})},
               {".plt.sec", 0x12000, stub(0x12000, 0x4018, true)}},
              {{0x4018, R_AARCH64_JUMP_SLOT, 1}, {0x20ff8, R_AARCH64_JUMP_SLOT, 2}});
  EXPECT_EQ(NameAt(table, 0x11000), "");
  EXPECT_EQ(NameAt(table, 0x11020), "puts@plt") << "a page below";
  EXPECT_EQ(NameAt(table, 0x1103f), "exit@plt") << "a page above";
  EXPECT_EQ(NameAt(table, 0x12000), "puts@plt") << "bti c is part of the stub";
}

}  // namespace
}  // namespace stackreel::symbolize
