#include "unwind/x86_64/code_bytes.h"

#include <gtest/gtest.h>

#include <vector>

namespace stackreel::unwind::x86_64 {
namespace {

bool AfterCall(std::vector<uint8_t> end, size_t size = kLongestCall) {
  std::vector<uint8_t> before(size > end.size() ? size - end.size() : 0, 0x90);
  before.insert(before.end(), end.begin(), end.end());
  return IsAfterCall(before);
}

TEST(CodeBytes, Calls) {
  EXPECT_TRUE(AfterCall({0xe8, 1, 2, 3, 4}));
  EXPECT_TRUE(AfterCall({0xff, 0xd0}));                    // *%rax
  EXPECT_TRUE(AfterCall({0x41, 0xff, 0xd4}));              // *%r12
  EXPECT_TRUE(AfterCall({0xff, 0x10}));                    // *(%rax)
  EXPECT_TRUE(AfterCall({0xff, 0x50, 0x18}));              // *24(%rax)
  EXPECT_TRUE(AfterCall({0xff, 0x90, 1, 2, 0, 0}));        // *disp32(%rax)
  EXPECT_TRUE(AfterCall({0xff, 0x15, 1, 2, 3, 4}));        // *x(%rip)
  EXPECT_TRUE(AfterCall({0xff, 0x14, 0xc8}));              // *(%rax,%rcx,8)
  EXPECT_TRUE(AfterCall({0xff, 0x14, 0x25, 1, 2, 3, 4}));  // *x
  EXPECT_TRUE(AfterCall({0xff, 0x54, 0x24, 0x08}));        // *8(%rsp)
  EXPECT_TRUE(AfterCall({0xff, 0x94, 0xc8, 1, 2, 3, 4}));  // *disp32(%rax,%rcx,8)
}

TEST(CodeBytes, NoCalls) {
  EXPECT_FALSE(AfterCall({0x90, 0x90}));
  EXPECT_FALSE(AfterCall({0xe9, 1, 2, 3, 4}));  // jmp
  EXPECT_FALSE(AfterCall({0xff, 0xe0}));        // jmp *%rax
  EXPECT_FALSE(AfterCall({0xff, 0x30}));        // push (%rax)
  EXPECT_FALSE(AfterCall({0xff, 0x50}));        // a displacement is missing
}

TEST(CodeBytes, TooFewBytesToSay) {
  EXPECT_TRUE(IsAfterCall({}));
  EXPECT_TRUE(AfterCall({0x90, 0x90, 0x90}, 3));
  EXPECT_FALSE(AfterCall({0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 6));
}

}  // namespace
}  // namespace stackreel::unwind::x86_64
