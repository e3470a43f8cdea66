#include "x86/relocation_map.h"

#include <gtest/gtest.h>

namespace stackreel::x86 {
namespace {

// push rbp (1) | mov rbp,rsp (3) | jz short (2, becomes 6)
RelocationMap Prologue() {
  RelocationMap map;
  EXPECT_TRUE(map.Add({0, 0}));
  EXPECT_TRUE(map.Add({1, 1}));
  EXPECT_TRUE(map.Add({4, 4}));
  EXPECT_TRUE(map.Add({6, 10}));
  return map;
}

TEST(RelocationMap, KnowsWhereEachInstructionWent) {
  const RelocationMap map = Prologue();
  EXPECT_EQ(map.To(0), 0);
  EXPECT_EQ(map.To(4), 4);
  EXPECT_EQ(map.To(6), 10);  // the end: behind the site is behind the copy
  EXPECT_EQ(map.From(10), 6);
  EXPECT_EQ(map.original_length(), 6);
  EXPECT_EQ(map.relocated_length(), 10);
}

TEST(RelocationMap, HasNoPlaceForTheInsideOfAnInstruction) {
  const RelocationMap map = Prologue();
  EXPECT_FALSE(map.To(2));
  EXPECT_FALSE(map.To(5));
  EXPECT_FALSE(map.From(6));  // inside the lengthened jump, though 6 is an original offset
  EXPECT_FALSE(map.To(7));
}

TEST(RelocationMap, IsEmptyAtFirstAndRefusesMoreThanItHolds) {
  RelocationMap map;
  EXPECT_EQ(map.original_length(), 0);
  EXPECT_FALSE(map.To(0));
  for (uint8_t i = 0; i < RelocationMap::kCapacity; ++i) EXPECT_TRUE(map.Add({i, i}));
  EXPECT_FALSE(map.Add({200, 200}));
  EXPECT_EQ(map.original_length(), RelocationMap::kCapacity - 1);
}

}  // namespace
}  // namespace stackreel::x86
