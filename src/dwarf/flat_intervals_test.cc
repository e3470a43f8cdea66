#include "dwarf/flat_intervals.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace stackreel::dwarf {
namespace {

using Interval = FlatIntervals::Interval;

TEST(FlatIntervalsTest, EmptyFindsNothing) {
  EXPECT_EQ(FlatIntervals().Find(0), FlatIntervals::kNone);
  EXPECT_EQ(FlatIntervals({{.lo = 5, .hi = 5, .value = 1}}).Find(5), FlatIntervals::kNone);
}

TEST(FlatIntervalsTest, InnerIsOnTopOfOuter) {
  const FlatIntervals flat({{.lo = 10, .hi = 50, .value = 1, .depth = 1},
                            {.lo = 20, .hi = 30, .value = 2, .depth = 2},
                            {.lo = 25, .hi = 27, .value = 3, .depth = 3}});
  EXPECT_EQ(flat.Find(9), FlatIntervals::kNone);
  EXPECT_EQ(flat.Find(10), 1U);
  EXPECT_EQ(flat.Find(20), 2U);
  EXPECT_EQ(flat.Find(26), 3U);
  EXPECT_EQ(flat.Find(27), 2U);
  EXPECT_EQ(flat.Find(30), 1U);
  EXPECT_EQ(flat.Find(50), FlatIntervals::kNone);
}

TEST(FlatIntervalsTest, InnerThatBeginsFirstOrEndsLastStaysOnTop) {
  const FlatIntervals flat({{.lo = 20, .hi = 30, .value = 1, .depth = 1},
                            {.lo = 10, .hi = 25, .value = 2, .depth = 2},
                            {.lo = 28, .hi = 40, .value = 3, .depth = 2}});
  EXPECT_EQ(flat.Find(10), 2U);
  EXPECT_EQ(flat.Find(24), 2U);
  EXPECT_EQ(flat.Find(25), 1U);
  EXPECT_EQ(flat.Find(28), 3U);
  EXPECT_EQ(flat.Find(39), 3U);
}

TEST(FlatIntervalsTest, ReachesTheHighestAddress) {
  const FlatIntervals flat({{.lo = UINT64_MAX - 4, .hi = UINT64_MAX, .value = 7}});
  EXPECT_EQ(flat.Find(UINT64_MAX - 1), 7U);
}

// Against the definition, address by address.
TEST(FlatIntervalsTest, AgreesWithTheDefinition) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Interval> intervals;
    const uint32_t count = random() % 20;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t lo = random() % 64;
      intervals.push_back(
          {.lo = lo, .hi = lo + random() % 20, .value = i, .depth = uint32_t(random() % 4)});
    }
    const FlatIntervals flat(intervals);
    for (uint64_t address = 0; address < 90; ++address) {
      const Interval* top = nullptr;
      for (const Interval& interval : intervals) {
        if (address < interval.lo || address >= interval.hi) continue;
        if (top == nullptr || interval.depth > top->depth ||
            (interval.depth == top->depth && interval.lo >= top->lo)) {
          top = &interval;
        }
      }
      ASSERT_EQ(flat.Find(address), top == nullptr ? FlatIntervals::kNone : top->value) << address;
    }
  }
}

}  // namespace
}  // namespace stackreel::dwarf
