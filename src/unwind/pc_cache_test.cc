#include "unwind/pc_cache.h"

#include <gtest/gtest.h>

#include <vector>

namespace stackreel::unwind {
namespace {

constexpr PcCache::Origin kLibrary = {.module_serial = 7, .bias = 0x10000};

TEST(PcCache, TellsPcsAndTagsApart) {
  PcCache cache;
  const uint32_t tag = cache.TagOf(1);
  cache.Insert({.pc = 0x1000, .tag = tag, .rule = 3}, kLibrary);
  cache.Insert({.pc = 0x1000, .tag = tag + 1, .rule = 4}, kLibrary);
  ASSERT_NE(cache.Find(0x1000, tag), nullptr);
  EXPECT_EQ(cache.Find(0x1000, tag)->rule, 3);
  ASSERT_NE(cache.Find(0x1000, tag + 1), nullptr);
  EXPECT_EQ(cache.Find(0x1000, tag + 1)->rule, 4);
  EXPECT_EQ(cache.Find(0x1001, tag), nullptr);
  EXPECT_EQ(cache.Find(0x1000, cache.TagOf(2)), nullptr);
  EXPECT_EQ(cache.Find(0, 0)->tag, 0);  // what is empty has no version's tag
}

// As many pcs as large programs have: hardly any is put out by others.
TEST(PcCache, KeepsTheCodeOfALargeProgram) {
  PcCache cache;
  const uint32_t tag = cache.TagOf(1);
  std::vector<uint64_t> pcs;
  uint64_t pc = 0x7f0000000000;
  for (uint32_t i = 0; i < 30'000; ++i) {
    pcs.push_back(pc += 5 + (i * i) % 300);
    cache.Insert({.pc = pc, .tag = tag, .rule = i}, kLibrary);
  }
  size_t known = 0;
  for (uint32_t i = 0; i < pcs.size(); ++i) {
    const auto* entry = cache.Find(pcs[i], tag);
    if (entry == nullptr) continue;
    EXPECT_EQ(entry->rule, i);
    ++known;
  }
  EXPECT_GE(known, pcs.size() * 97 / 100);
}

TEST(PcCache, TakesOverWhatIsTheSameInAnotherVersion) {
  PcCache cache;
  const uint32_t before = cache.TagOf(1);
  const uint32_t after = cache.TagOf(2);
  cache.Insert({.pc = 0x1000, .tag = before, .rule = 3}, kLibrary);
  EXPECT_EQ(cache.TakeOver(0x1000, after + 1, kLibrary), nullptr);  // another kind of address
  EXPECT_EQ(cache.TakeOver(0x1000, after, {.module_serial = 7, .bias = 0}), nullptr);
  EXPECT_EQ(cache.TakeOver(0x1000, after, {.module_serial = 8, .bias = 0x10000}), nullptr);
  ASSERT_NE(cache.TakeOver(0x1000, after, kLibrary), nullptr);
  ASSERT_NE(cache.Find(0x1000, after), nullptr);
  EXPECT_EQ(cache.Find(0x1000, after)->rule, 3);
}

TEST(PcCache, ForgetsAll) {
  PcCache cache;
  cache.Insert({.pc = 0x1000, .tag = cache.TagOf(1), .rule = 3}, kLibrary);
  cache.Clear();
  EXPECT_EQ(cache.Find(0x1000, cache.TagOf(1)), nullptr);
}

}  // namespace
}  // namespace stackreel::unwind
