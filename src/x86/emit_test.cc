#include "x86/emit.h"

#include <Zydis/Zydis.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stackreel::x86 {
namespace {

// What Zydis makes of the bytes, all of which must be one instruction.
std::string TextOf(ByteView bytes, uint64_t at) {
  ZydisDisassembledInstruction instruction;
  if (!ZYAN_SUCCESS(ZydisDisassembleIntel(ZYDIS_MACHINE_MODE_LONG_64, at, bytes.data(),
                                          bytes.size(), &instruction))) {
    return "undecodable";
  }
  if (instruction.info.length != bytes.size()) return "other length";
  return instruction.text;
}

TEST(Emit, BranchesGoWhereTheyShall) {
  EXPECT_EQ(TextOf(*Jump(Avma(0x1000), Avma(0x2000)), 0x1000), "jmp 0x0000000000002000");
  EXPECT_EQ(TextOf(*Call(Avma(0x7f0000001000), Avma(0x7effffff0000)), 0x7f0000001000),
            "call 0x00007EFFFFFF0000");
  EXPECT_EQ(TextOf(*ShortJump(Avma(0x1000), Avma(0xffb)), 0x1000), "jmp 0x0000000000000FFB");
}

TEST(Emit, BranchesEndWhereTheirReachDoes) {
  const Avma at(0x100000000000);
  const Avma end = at + kJumpLength;
  EXPECT_TRUE(Jump(at, end + 0x7fffffff));
  EXPECT_FALSE(Jump(at, end + 0x80000000));
  EXPECT_TRUE(Jump(at, end - 0x80000000));
  EXPECT_FALSE(Jump(at, end - 0x80000001));
  EXPECT_TRUE(ShortJump(at, at + 2 + 127));
  EXPECT_FALSE(ShortJump(at, at + 2 + 128));
  EXPECT_TRUE(ShortJump(at, at + 2 - 128));
  EXPECT_FALSE(ShortJump(at, at + 2 - 129));
  // The address space is a circle for the CPU, and no longer way round is taken for a short one.
  EXPECT_FALSE(Jump(Avma(0x1000), Avma(0x7fffffffffff)));
}

TEST(Emit, AbsoluteJumpReadsItsOwnOperand) {
  const auto code = AbsoluteJump(Avma(0x1122334455667788));
  EXPECT_EQ(TextOf(ByteView(code).first(6), 0x1000), "jmp [0x0000000000001006]");
  EXPECT_EQ(LoadUnaligned<uint64_t>(code.data() + 6, Endian::kLittle), 0x1122334455667788U);
}

TEST(Emit, Moves) {
  const char* const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                               "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};
  const char* const names32[] = {"eax", "ecx", "edx",  "ebx",  "esp",  "ebp",  "esi",  "edi",
                                 "r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"};
  for (uint8_t i = 0; i < 16; ++i) {
    EXPECT_EQ(TextOf(MoveNumber64(Register(i), 0x8899aabbccddeeff), 0),
              std::string("mov ") + names[i] + ", 0x8899AABBCCDDEEFF");
    EXPECT_EQ(TextOf(MoveNumber32(Register(i), 0x80000001), 0),
              std::string("mov ") + names32[i] + ", 0x80000001");
  }
}

TEST(Emit, Pushes) {
  EXPECT_EQ(TextOf(PushNumber(0x12345678), 0), "push 0x12345678");
  EXPECT_EQ(TextOf(PushMemory(5), 0x1000), "push [0x000000000000100B]");
}

TEST(Emit, NopsAreOneInstructionEach) {
  for (size_t length = 1; length <= kLongestNop; ++length) {
    EXPECT_TRUE(TextOf(Nop(length), 0).starts_with(length <= 2 ? "" : "nop")) << length;
    EXPECT_EQ(Nop(length).size(), length);
    EXPECT_NE(TextOf(Nop(length), 0), "other length") << length;
  }
  EXPECT_TRUE(Nop(0).empty());
  EXPECT_TRUE(Nop(kLongestNop + 1).empty());
  std::vector<uint8_t> gap(23, kInt3);
  FillWithNops(gap);
  EXPECT_TRUE(TextOf(ByteView(gap).first(9), 0).starts_with("nop"));
  EXPECT_TRUE(TextOf(ByteView(gap).subspan(9, 9), 0).starts_with("nop"));
  EXPECT_TRUE(TextOf(ByteView(gap).subspan(18), 0).starts_with("nop"));
}

TEST(Emit, TrapIsInt3) { EXPECT_EQ(TextOf(ByteView(&kInt3, 1), 0), "int3"); }

}  // namespace
}  // namespace stackreel::x86
