#include "record/time_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace stackreel::record {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TimeOrderTest : public ::testing::Test {
 protected:
  std::vector<uint64_t> EndRound() {
    std::vector<uint64_t> times;
    EXPECT_TRUE(order_
                    .EndRound([&](const TimeOrder::Entry& entry) -> Status {
                      times.push_back(entry.time);
                      return {};
                    })
                    .has_value());
    return times;
  }
  std::vector<uint64_t> Finish() {
    std::vector<uint64_t> times;
    EXPECT_TRUE(order_
                    .Finish([&](const TimeOrder::Entry& entry) -> Status {
                      times.push_back(entry.time);
                      return {};
                    })
                    .has_value());
    return times;
  }
  TimeOrder order_;
};

TEST_F(TimeOrderTest, HoldsBackWhatAnotherRingMayStillPrecede) {
  // Round 1 empties ring A up to time 10, then ring B up to 14. Ring A's 12 and 13 come in round 2.
  for (const uint64_t time : {5, 10, 6, 14}) order_.Add(time, {});
  EXPECT_THAT(EndRound(), IsEmpty());
  for (const uint64_t time : {12, 13, 20, 15}) order_.Add(time, {});
  EXPECT_THAT(EndRound(), ElementsAre(5, 6, 10, 12, 13, 14));
  EXPECT_THAT(EndRound(), ElementsAre(15, 20));
  EXPECT_EQ(order_.late(), 0u);
}

TEST_F(TimeOrderTest, FinishPassesAllAndRecordsWithoutTimeComeFirst) {
  for (const uint64_t time : {7, 0, 3}) order_.Add(time, {});
  EXPECT_THAT(Finish(), ElementsAre(0, 3, 7));
}

TEST_F(TimeOrderTest, KnowsWhichRoundsAreStillNeeded) {
  order_.Add(10, {});
  EndRound();
  EXPECT_EQ(order_.oldest_round(), 0u);
  order_.Add(20, {});
  EndRound();  // passes 10 on
  EXPECT_EQ(order_.oldest_round(), 1u);
  EndRound();
  EXPECT_EQ(order_.oldest_round(), 3u);
}

TEST_F(TimeOrderTest, EqualTimesKeepTheirOrder) {
  const std::array<uint8_t, 3> bytes = {1, 2, 3};
  for (size_t i = 0; i < 3; ++i) order_.Add(9, ByteView(bytes).subspan(i, 1));
  std::vector<int> seen;
  ASSERT_TRUE(order_
                  .Finish([&](const TimeOrder::Entry& entry) -> Status {
                    seen.push_back(entry.record[0]);
                    return {};
                  })
                  .has_value());
  EXPECT_THAT(seen, ElementsAre(1, 2, 3));
}

TEST_F(TimeOrderTest, WhatComesTooLateIsCounted) {
  order_.Add(10, {});
  EndRound();
  EndRound();
  order_.Add(5, {});
  EndRound();
  EXPECT_THAT(EndRound(), ElementsAre());
  EXPECT_EQ(order_.late(), 1u);
}

// Rings that are written while they are emptied, one after the other: whatever comes out is in
// order, and all of it comes out.
TEST_F(TimeOrderTest, AnyInterleavingOfRingsComesOutInOrder) {
  std::mt19937 random(7);
  std::vector<std::vector<uint64_t>> rings(4);
  uint64_t now = 1;
  size_t written = 0;
  std::vector<uint64_t> out;
  const auto append = [&out](const std::vector<uint64_t>& times) {
    out.insert(out.end(), times.begin(), times.end());
  };
  for (int round = 0; round < 200; ++round) {
    for (auto& ring : rings) {
      for (unsigned n = random() % 6; n > 0; --n, ++written) rings[random() % 4].push_back(now++);
      for (const uint64_t time : ring) order_.Add(time, {});
      ring.clear();
    }
    append(EndRound());
  }
  for (auto& ring : rings) {
    for (const uint64_t time : ring) order_.Add(time, {});
  }
  append(EndRound());
  append(Finish());
  EXPECT_TRUE(std::ranges::is_sorted(out));
  EXPECT_EQ(out.size(), written);
  EXPECT_EQ(order_.late(), 0u);
}

}  // namespace
}  // namespace stackreel::record
