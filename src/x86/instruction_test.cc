#include "x86/instruction.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stackreel::x86 {
namespace {

using Bytes = std::vector<uint8_t>;

struct FlowCase {
  const char* name;
  Bytes bytes;
  Flow flow;
  uint8_t branch_offset = 0;
  uint8_t branch_size = 0;
  int32_t branch_value = 0;
};

TEST(Decode, TellsWhereControlGoes) {
  const FlowCase cases[] = {
      {"push rbp", {0x55}, Flow::kNext},
      {"jmp short", {0xeb, 0xfe}, Flow::kJump, 1, 1, -2},
      {"jmp near", {0xe9, 0x10, 0, 0, 0x80}, Flow::kJump, 1, 4, INT32_MIN + 16},
      {"bnd jmp", {0xf2, 0xe9, 1, 0, 0, 0}, Flow::kJump, 2, 4, 1},
      {"je short", {0x74, 0x7f}, Flow::kConditionalJump, 1, 1, 127},
      {"jg near", {0x0f, 0x8f, 0xff, 0xff, 0xff, 0xff}, Flow::kConditionalJump, 2, 4, -1},
      {"jne, hint taken", {0x3e, 0x75, 0x05}, Flow::kConditionalJump, 2, 1, 5},
      {"jrcxz", {0xe3, 0x80}, Flow::kConditionalJump, 1, 1, -128},
      {"jecxz", {0x67, 0xe3, 0x01}, Flow::kConditionalJump, 2, 1, 1},
      {"loop", {0xe2, 0x01}, Flow::kConditionalJump, 1, 1, 1},
      {"loopne", {0xe0, 0x01}, Flow::kConditionalJump, 1, 1, 1},
      {"xbegin", {0xc7, 0xf8, 4, 3, 2, 1}, Flow::kConditionalJump, 2, 4, 0x01020304},
      {"xbegin rel16", {0x66, 0xc7, 0xf8, 4, 3}, Flow::kConditionalJump, 3, 2, 0x0304},
      {"call", {0xe8, 0, 0, 0, 0}, Flow::kCall, 1, 4, 0},
      {"data16 rex.w call", {0x66, 0x66, 0x48, 0xe8, 9, 0, 0, 0}, Flow::kCall, 4, 4, 9},
      {"call rax", {0xff, 0xd0}, Flow::kIndirectCall},
      {"notrack call [rbx+8]", {0x3e, 0xff, 0x53, 8}, Flow::kIndirectCall},
      {"call [rip+1]", {0xff, 0x15, 1, 0, 0, 0}, Flow::kIndirectCall},
      {"notrack jmp rdx", {0x3e, 0xff, 0xe2}, Flow::kIndirectJump},
      {"jmp [rax*8+16]", {0xff, 0x24, 0xc5, 16, 0, 0, 0}, Flow::kIndirectJump},
      {"ret", {0xc3}, Flow::kReturn},
      {"rep ret", {0xf3, 0xc3}, Flow::kReturn},
      {"ret 8", {0xc2, 8, 0}, Flow::kReturn},
      {"iretq", {0x48, 0xcf}, Flow::kReturn},
      {"ud2", {0x0f, 0x0b}, Flow::kStop},
      {"ud1", {0x67, 0x0f, 0xb9, 0x40, 0x02}, Flow::kStop},
      {"int3", {0xcc}, Flow::kStop},
      {"int1", {0xf1}, Flow::kStop},
      {"hlt", {0xf4}, Flow::kStop},
      {"int 0x80", {0xcd, 0x80}, Flow::kNext},
      {"syscall", {0x0f, 0x05}, Flow::kNext},
      {"xend", {0x0f, 0x01, 0xd5}, Flow::kNext},
  };
  for (const FlowCase& c : cases) {
    SCOPED_TRACE(c.name);
    const auto instruction = Decode(c.bytes);
    ASSERT_TRUE(instruction);
    EXPECT_EQ(instruction->length, c.bytes.size());
    EXPECT_EQ(instruction->flow, c.flow);
    EXPECT_EQ(instruction->branch.offset, c.branch_offset);
    EXPECT_EQ(instruction->branch.size, c.branch_size);
    EXPECT_EQ(instruction->branch.value, c.branch_value);
  }
}

struct MemoryCase {
  const char* name;
  Bytes bytes;
  uint8_t offset;  // 0: not rip-relative
  int32_t value = 0;
};

TEST(Decode, FindsRipRelativeOperands) {
  const MemoryCase cases[] = {
      {"lea rax, [rip+0x12345678]", {0x48, 0x8d, 0x05, 0x78, 0x56, 0x34, 0x12}, 3, 0x12345678},
      {"cmp byte [rip-1], 0x7f", {0x80, 0x3d, 0xff, 0xff, 0xff, 0xff, 0x7f}, 2, -1},
      {"mov dword [rip+4], imm32", {0xc7, 0x05, 4, 0, 0, 0, 1, 2, 3, 4}, 2, 4},
      {"mov eax, [eip+8]", {0x67, 0x8b, 0x05, 8, 0, 0, 0}, 3, 8},
      {"vmovaps ymm0, [rip+2]", {0xc5, 0xfc, 0x28, 0x05, 2, 0, 0, 0}, 4, 2},
      {"vpshufb xmm (VEX3)", {0xc4, 0xe2, 0x79, 0x00, 0x05, 3, 0, 0, 0}, 5, 3},
      {"vmovdqa64 zmm0, [rip+64] (EVEX: not scaled)",
       {0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x05, 64, 0, 0, 0},
       6,
       64},
      {"vpternlogd zmm, [rip], imm8",
       {0x62, 0xf3, 0x7d, 0x48, 0x25, 0x05, 16, 0, 0, 0, 0xff},
       6,
       16},
      {"vpcomb xmm, [rip] (XOP)", {0x8f, 0xe8, 0x78, 0xcc, 0x05, 5, 0, 0, 0, 1}, 5, 5},
      {"pfadd mm0, [rip] (3DNow!)", {0x0f, 0x0f, 0x05, 6, 0, 0, 0, 0x9e}, 3, 6},
      {"mov eax, [rsi+rdi]", {0x8b, 0x04, 0x3e}, 0},
      {"mov eax, [0x10] (SIB without a base)", {0x8b, 0x04, 0x25, 16, 0, 0, 0}, 0},
      {"mov eax, [rbp+0]", {0x8b, 0x45, 0}, 0},
      {"mov rax, moffs64", {0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, 0},
      {"mov rbp, cr0 (mod is ignored)", {0x0f, 0x20, 0x05}, 0},
  };
  for (const MemoryCase& c : cases) {
    SCOPED_TRACE(c.name);
    const auto instruction = Decode(c.bytes);
    ASSERT_TRUE(instruction);
    EXPECT_EQ(instruction->length, c.bytes.size());
    EXPECT_EQ(instruction->memory.size, c.offset == 0 ? 0 : 4);
    EXPECT_EQ(instruction->memory.offset, c.offset);
    EXPECT_EQ(instruction->memory.value, c.value);
  }
}

TEST(Decode, KnowsNopsAndEndbr64) {
  for (const Bytes& bytes : std::vector<Bytes>{
           {0x90},
           {0x66, 0x90},
           {0x0f, 0x1f, 0x44, 0, 0},
           {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
           {0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
       }) {
    const auto nop = Decode(bytes);
    ASSERT_TRUE(nop);
    EXPECT_TRUE(nop->is_nop) << bytes.size();
    EXPECT_EQ(nop->length, bytes.size());
  }
  const auto endbr64 = Decode(Bytes{0xf3, 0x0f, 0x1e, 0xfa});
  ASSERT_TRUE(endbr64);
  EXPECT_TRUE(endbr64->is_endbr64);
  EXPECT_FALSE(endbr64->is_nop);
  EXPECT_FALSE(Decode(Bytes{0xf3, 0x90})->is_nop);  // pause
  // xchg r8, rax
  EXPECT_FALSE(Decode(Bytes{0x49, 0x90})->is_nop);
}

TEST(Decode, TakesNoPartOfAnInstructionAndNothingInvalid) {
  const Bytes instruction = {0x48, 0x8d, 0x05, 0x78, 0x56, 0x34, 0x12};
  for (size_t size = 0; size < instruction.size(); ++size) {
    EXPECT_FALSE(Decode(ByteView(instruction).first(size))) << size;
  }
  for (const Bytes& bytes : std::vector<Bytes>{
           {0x06},                          // push es: not in 64-bit mode
           {0xea, 0, 0, 0, 0, 0, 0},        // far jump to an immediate
           {0xd5, 0x11, 0x58},              // REX2 (APX)
           {0x0f, 0x04},                    // no opcode
           {0xf0, 0x90, 0x90},              // lock nop
           {0x62, 0xf1, 0xfc, 0x48, 0x77},  // EVEX of an opcode that has none
           Bytes(16, 0x66),                 // prefixes without end
       }) {
    EXPECT_FALSE(Decode(bytes)) << std::hex << int{bytes[0]};
  }
  // 15 bytes are allowed, 16 are not.
  Bytes longest(8, 0x2e);
  longest.insert(longest.end(), instruction.begin(), instruction.end());
  EXPECT_EQ(Decode(longest)->length, 15);
  longest.insert(longest.begin(), 0x2e);
  EXPECT_FALSE(Decode(longest));
}

TEST(Decode, MarksBranchesThatAmdCuts) {
  EXPECT_TRUE(Decode(Bytes{0x66, 0xe9, 1, 0, 0, 0})->is_cut_on_amd);
  EXPECT_TRUE(Decode(Bytes{0x66, 0x74, 1})->is_cut_on_amd);
  EXPECT_FALSE(Decode(Bytes{0x66, 0x48, 0xe8, 1, 0, 0, 0})->is_cut_on_amd);
  EXPECT_FALSE(Decode(Bytes{0xf2, 0xe9, 1, 0, 0, 0})->is_cut_on_amd);
}

TEST(TargetOf, CountsFromTheEndAndWraps) {
  const auto jump = Decode(Bytes{0xeb, 0xfe});
  EXPECT_EQ(TargetOf(*jump, jump->branch, 0x1000), 0x1000U);
  const auto load = Decode(Bytes{0x67, 0x8b, 0x05, 0xf0, 0xff, 0xff, 0xff});  // [eip-16]
  EXPECT_EQ(TargetOf(*load, load->memory, 0x7f0000000000), 0xfffffff7U);
}

}  // namespace
}  // namespace stackreel::x86
