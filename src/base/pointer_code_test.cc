#include "base/pointer_code.h"

#include <gtest/gtest.h>

namespace stackreel {
namespace {

constexpr uint64_t kMask48 = 0x007f000000000000;

TEST(PointerCodeTest, TakesTheCodeOutOfUserAddresses) {
  EXPECT_EQ(StripCode(0x003caaaab1234568, kMask48), 0x0000aaaab1234568u);
  EXPECT_EQ(StripCode(0x0000aaaab1234568, kMask48), 0x0000aaaab1234568u);
}

TEST(PointerCodeTest, SetsTheCodeBitsOfKernelAddresses) {
  EXPECT_EQ(StripCode(0xffa3800008123456, kMask48), 0xffff800008123456u);
  EXPECT_EQ(StripCode(0x12b3800008123456, kMask48), 0xffff800008123456u);
}

TEST(PointerCodeTest, KeepsBit55WhateverTheMaskSays) {
  EXPECT_EQ(StripCode(0x00bcaaaab1234568, ~uint64_t{0} << 48), 0xffffaaaab1234568u);
}

TEST(PointerCodeTest, TakesOnlyTheTagFromData) {
  EXPECT_EQ(StripTag(0x5a00ffffe1234560), 0x0000ffffe1234560u);
  EXPECT_EQ(StripTag(0x5a0fffffe1234560), 0x000fffffe1234560u);
}

TEST(PointerCodeTest, TagsOfX86AreBits62To57OfUserAddresses) {
  EXPECT_EQ(StripTagX86(0x7e007fffe1234560), 0x00007fffe1234560u);
  EXPECT_EQ(StripTagX86(0x01ff7fffe1234560), 0x01ff7fffe1234560u);  // 57-bit address
  EXPECT_EQ(StripTagX86(0xffff888012345678), 0xffff888012345678u);
}

}  // namespace
}  // namespace stackreel
