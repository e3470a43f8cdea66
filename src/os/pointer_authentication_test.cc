#include "os/pointer_authentication.h"

#include <gtest/gtest.h>

#include <bit>

namespace stackreel::os {
namespace {

#if defined(__aarch64__)

// The mask is bits 54 down to the size of an address, without a hole, and takes nothing of ours.
TEST(PointerAuthentication, MaskIsWhatStrippingTakes) {
  const auto found = LearnPointerAuthentication();
  if (!found) GTEST_SKIP() << "this CPU has no pointer authentication";
  const uint64_t mask = found->insn_mask;
  EXPECT_EQ(std::bit_width(mask), 55);
  EXPECT_TRUE(std::has_single_bit((mask >> std::countr_zero(mask)) + 1));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(&LearnPointerAuthentication) & mask, 0u);
  EXPECT_EQ(found->data_mask, mask);
}

// A pointer that the CPU signs differs from the plain one in bits of the mask only.
__attribute__((noinline)) uint64_t Sign(uint64_t pointer) {
  register uint64_t x17 asm("x17") = pointer;
  register uint64_t x16 asm("x16") = 0x1234;
  asm volatile("hint #8" : "+r"(x17) : "r"(x16));  // pacia1716
  return x17;
}
TEST(PointerAuthentication, CodesLieInTheMask) {
  const auto found = LearnPointerAuthentication();
  if (!found) GTEST_SKIP() << "this CPU has no pointer authentication";
  const uint64_t plain = 0x0000aaaabbbbccc0;
  uint64_t seen = 0;
  for (uint64_t i = 0; i < 64; ++i) seen |= Sign(plain + 4 * i) ^ (plain + 4 * i);
  EXPECT_EQ(seen & ~found->insn_mask, 0u);
  EXPECT_NE(seen, 0u);
}

#else

TEST(PointerAuthentication, NoneOnOtherCpus) { EXPECT_FALSE(LearnPointerAuthentication()); }

#endif

}  // namespace
}  // namespace stackreel::os
