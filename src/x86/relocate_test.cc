#include "x86/relocate.h"

#include <gtest/gtest.h>

#include <vector>

#include "x86/instruction.h"

namespace stackreel::x86 {
namespace {

using Bytes = std::vector<uint8_t>;

constexpr Avma kFrom(0x555500001000);
constexpr Avma kTo(0x555510000000);

Bytes CopyOf(const RelocatedCode& code) { return {code.view().begin(), code.view().end()}; }

// Where the branch at `offset` of the copy goes.
Avma TargetInCopy(const RelocatedCode& code, size_t offset) {
  const auto instruction = Decode(code.view().subspan(offset));
  EXPECT_TRUE(instruction);
  EXPECT_NE(instruction->branch.size, 0);
  return Avma(TargetOf(*instruction, instruction->branch, kTo.value + offset));
}

TEST(Relocate, CopiesWholeInstructions) {
  // push rbp; mov rbp, rsp; sub rsp, 0x20; ret
  const Bytes code = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xc3};
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  EXPECT_EQ(CopyOf(*copy), Bytes(code.begin(), code.begin() + 8));
  EXPECT_EQ(copy->map.original_length(), 8);
  EXPECT_EQ(copy->map.To(4), 4);
  EXPECT_FALSE(copy->map.To(5));
  EXPECT_TRUE(copy->falls_through);
  EXPECT_EQ(Relocate(code, kFrom, kTo, 1)->map.original_length(), 1);
  EXPECT_EQ(Relocate(code, kFrom, kTo, 0)->map.original_length(), 0);
}

TEST(Relocate, RebasesRipRelativeOperands) {
  const Bytes code = {0x48, 0x8d, 0x05, 0x78, 0x56, 0x34, 0x12};  // lea rax, [rip+0x12345678]
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  const auto lea = Decode(copy->view());
  EXPECT_EQ(TargetOf(*lea, lea->memory, kTo.value), kFrom.value + 7 + 0x12345678);
  // An operand before an immediate counts from behind it.
  const Bytes compare = {0x80, 0x3d, 0x10, 0, 0, 0, 0x7f};  // cmp byte [rip+16], 0x7f
  const auto compared = Relocate(compare, kFrom, kTo, 5);
  const auto cmp = Decode(compared->view());
  EXPECT_EQ(TargetOf(*cmp, cmp->memory, kTo.value), kFrom.value + 7 + 16);
  EXPECT_EQ(compared->view()[6], 0x7f);
}

TEST(Relocate, RefusesWhatIsOutOfReach) {
  const Bytes code = {0x48, 0x8d, 0x05, 0, 0, 0, 0x70};  // 1.75 GiB ahead
  EXPECT_TRUE(Relocate(code, kFrom, kFrom + 0x10000000, 5));
  const auto refused = Relocate(code, kFrom, kFrom - 0x20000000, 5);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), RelocateRefusal::kOutOfReach);
  const Bytes jump = {0xe9, 0, 0, 0, 0x70};
  EXPECT_EQ(Relocate(jump, kFrom, kFrom - 0x20000000, 5).error(), RelocateRefusal::kOutOfReach);
  // Addresses of 32 bits wrap: all of them are in reach.
  const Bytes wrapping = {0x67, 0x8d, 0x05, 0, 0, 0, 0x70};  // lea eax, [eip+…]
  const auto copy = Relocate(wrapping, kFrom, kFrom - 0x20000000, 5);
  ASSERT_TRUE(copy);
  const auto lea = Decode(copy->view());
  EXPECT_EQ(TargetOf(*lea, lea->memory, kFrom.value - 0x20000000),
            (kFrom.value + 7 + 0x70000000) & 0xffffffff);
}

TEST(Relocate, MakesShortJumpsNear) {
  // test edi, edi; je +0x10; push rbx
  const Bytes code = {0x85, 0xff, 0x74, 0x10, 0x53};
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->map.To(2), 2);
  EXPECT_EQ(copy->map.To(4), 8);
  EXPECT_EQ(copy->map.To(5), 9);
  EXPECT_EQ(copy->bytes[2], 0x0f);
  EXPECT_EQ(copy->bytes[3], 0x84);
  EXPECT_EQ(TargetInCopy(*copy, 2), kFrom + 4 + 0x10);
  const Bytes jump = {0xeb, 0x80};
  const auto jumped = Relocate(jump, kFrom, kTo, 2);
  EXPECT_EQ(TargetInCopy(*jumped, 0), kFrom + 2 - 128);
  EXPECT_FALSE(jumped->falls_through);
}

TEST(Relocate, SendsLoopsOnADetour) {
  const Bytes code = {0xe3, 0x20, 0x48, 0x89, 0xf8};  // jrcxz +0x20; mov rax, rdi
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->map.To(2), 9);
  EXPECT_EQ(TargetInCopy(*copy, 0), kTo + 4);  // taken
  EXPECT_EQ(TargetInCopy(*copy, 2), kTo + 9);  // not taken
  EXPECT_EQ(TargetInCopy(*copy, 4), kFrom + 2 + 0x20);
  // Between them is no boundary that counts.
  EXPECT_FALSE(copy->map.From(2));
  EXPECT_FALSE(copy->map.From(4));
  EXPECT_EQ(copy->map.From(9), 2);
}

TEST(Relocate, AimsBranchesIntoThePieceAtTheCopy) {
  // inc eax; dec ecx; jne back to dec; (jump back into first 5 bytes)
  const Bytes code = {0xff, 0xc0, 0xff, 0xc9, 0x75, 0xfc};
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  EXPECT_EQ(TargetInCopy(*copy, 4), kTo + 2);
  // To the function's first instruction: still a loop, not another call of it.
  const Bytes to_start = {0xff, 0xc0, 0xff, 0xc9, 0x75, 0xfa};
  EXPECT_EQ(TargetInCopy(*Relocate(to_start, kFrom, kTo, 5), 4), kTo);
  // Forward within the piece, over what grows.
  const Bytes forward = {0x74, 0x02, 0x74, 0x00, 0x90};
  const auto grown = Relocate(forward, kFrom, kTo, 5);
  EXPECT_EQ(TargetInCopy(*grown, 0), kTo + 12);
  EXPECT_EQ(grown->map.To(4), 12);
  const Bytes inside = {0xff, 0xc0, 0xff, 0xc9, 0x75, 0xfb};
  EXPECT_EQ(Relocate(inside, kFrom, kTo, 5).error(), RelocateRefusal::kBranchIntoInstruction);
}

// A callee, an unwinder and an exception must see the original's return address.
TEST(Relocate, CallsPushTheOriginalReturnAddress) {
  const Bytes code = {0x50, 0xe8, 0x00, 0x01, 0, 0};  // push rax; call +0x100
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  const auto push = Decode(copy->view().subspan(1));
  ASSERT_TRUE(push);
  const size_t literal = TargetOf(*push, push->memory, kTo.value + 1) - kTo.value;
  ASSERT_LE(literal + 8, copy->view().size());
  EXPECT_EQ(LoadUnaligned<uint64_t>(copy->bytes.data() + literal, Endian::kLittle),
            kFrom.value + 6);
  EXPECT_EQ(TargetInCopy(*copy, 1 + push->length), kFrom + 6 + 0x100);
  EXPECT_FALSE(copy->falls_through);
  EXPECT_EQ(copy->map.original_length(), 6);
}

TEST(Relocate, IndirectCallsToo) {
  const Bytes code = {0x41, 0x54, 0xff, 0x15, 8, 0, 0, 0};  // push r12; call [rip+8]
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  const auto jump = Decode(copy->view().subspan(8));
  ASSERT_TRUE(jump);
  EXPECT_EQ(jump->flow, Flow::kIndirectJump);
  EXPECT_EQ(TargetOf(*jump, jump->memory, kTo.value + 8), kFrom.value + 8 + 8);
  EXPECT_EQ(LoadUnaligned<uint64_t>(copy->bytes.data() + 14, Endian::kLittle), kFrom.value + 8);
  // By way of rsp it would read what the push has moved; r12 has the same number but for REX.B.
  for (const Bytes& refused :
       std::vector<Bytes>{{0xff, 0xd4}, {0xff, 0x54, 0x24, 0x08}, {0x4a, 0xff, 0x14, 0x24}}) {
    EXPECT_EQ(Relocate(refused, kFrom, kTo, 1).error(), RelocateRefusal::kCannotRunElsewhere);
  }
  EXPECT_TRUE(Relocate(Bytes{0x41, 0xff, 0xd4}, kFrom, kTo, 1));
  EXPECT_TRUE(Relocate(Bytes{0x41, 0xff, 0x54, 0x24, 0x08}, kFrom, kTo, 1));
}

TEST(Relocate, RefusesCallsThatWouldReturnIntoThePatch) {
  const Bytes code = {0xff, 0xd0, 0x48, 0x89, 0xc3};  // call rax; mov rbx, rax
  EXPECT_EQ(Relocate(code, kFrom, kTo, 5).error(), RelocateRefusal::kCallReturnsInside);
  EXPECT_TRUE(Relocate(code, kFrom, kTo, 2));
}

TEST(Relocate, RefusesCallsUnderAShadowStack) {
  const Bytes code = {0xe8, 0, 1, 0, 0};
  EXPECT_EQ(Relocate(code, kFrom, kTo, 5, {.has_shadow_stack = true}).error(),
            RelocateRefusal::kShadowStack);
  EXPECT_EQ(Relocate(Bytes{0xff, 0xd0}, kFrom, kTo, 2, {.has_shadow_stack = true}).error(),
            RelocateRefusal::kShadowStack);
  EXPECT_TRUE(Relocate(Bytes{0xff, 0xe0}, kFrom, kTo, 2, {.has_shadow_stack = true}));
}

TEST(Relocate, ReaimsXbegin) {
  const Bytes code = {0xc7, 0xf8, 0x30, 0, 0, 0};
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->bytes[0], 0xc7);
  EXPECT_EQ(TargetInCopy(*copy, 0), kFrom + 6 + 0x30);
}

TEST(Relocate, RefusesWithAReason) {
  EXPECT_EQ(Relocate(Bytes{0x55, 0x06, 0, 0, 0, 0}, kFrom, kTo, 5).error(),
            RelocateRefusal::kUndecodable);
  EXPECT_EQ(Relocate(Bytes{0x55, 0xc3}, kFrom, kTo, 5).error(), RelocateRefusal::kTooShort);
  EXPECT_EQ(Relocate(Bytes{}, kFrom, kTo, 1).error(), RelocateRefusal::kTooShort);
  EXPECT_EQ(Relocate(Bytes{0xcc, 0xc3}, kFrom, kTo, 1).error(),
            RelocateRefusal::kCannotRunElsewhere);
  EXPECT_EQ(Relocate(Bytes{0x66, 0xe9, 0, 0, 0, 0}, kFrom, kTo, 5).error(),
            RelocateRefusal::kCannotRunElsewhere);
  EXPECT_EQ(Relocate(Bytes{0xff, 0x18}, kFrom, kTo, 2).error(),  // call far [rax]
            RelocateRefusal::kCannotRunElsewhere);
  // mov eax, [rip-7]: reads its own bytes; lea of the entry is the function's address.
  EXPECT_EQ(Relocate(Bytes{0x90, 0x8b, 0x05, 0xf9, 0xff, 0xff, 0xff}, kFrom, kTo, 5).error(),
            RelocateRefusal::kReadsItself);
  EXPECT_TRUE(Relocate(Bytes{0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff}, kFrom, kTo, 5));
  EXPECT_EQ(Relocate(Bytes{0x90, 0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff}, kFrom, kTo, 5).error(),
            RelocateRefusal::kReadsItself);
}

// The longest that a piece can become still has room.
TEST(Relocate, HasRoomForTheLongest) {
  // jrcxz; jrcxz; call [rip+x] with as many prefixes as fit
  Bytes code = {0xe3, 0x20, 0xe3, 0x20};
  code.insert(code.end(), 9, 0x3e);
  code.insert(code.end(), {0xff, 0x15, 0, 0, 0, 1});
  const auto copy = Relocate(code, kFrom, kTo, 5);
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->map.original_length(), kMaxRelocatedLength);
  EXPECT_LE(copy->view().size(), kMaxCopyLength);
  EXPECT_EQ(copy->map.size(), 4U);
}

}  // namespace
}  // namespace stackreel::x86
