#include "record/round_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace stackreel::record {
namespace {

// A round whose bytes tell which one it is, and compress only in part.
Round MakeRound(size_t number, size_t size) {
  std::mt19937 random(static_cast<unsigned>(number));
  Round round;
  for (size_t ring = 0; ring < 3; ++ring) {
    std::vector<uint8_t>& bytes = round.rings.emplace_back(ring == 1 ? 0 : size);
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i % 4 == 0 ? random() : number;
  }
  return round;
}

TEST(RoundQueue, FirstInFirstOut) {
  RoundQueue queue(1 << 20);
  for (size_t i = 0; i < 5; ++i) queue.Push(MakeRound(i, 100));
  queue.Close();
  for (size_t i = 0; i < 5; ++i) {
    auto round = queue.Pop();
    ASSERT_TRUE(round.has_value() && round->has_value());
    EXPECT_EQ((*round)->rings, MakeRound(i, 100).rings);
  }
  EXPECT_FALSE(queue.Pop()->has_value());
  EXPECT_EQ(queue.spilled_bytes(), 0u);
}

TEST(RoundQueue, WhatMemoryDoesNotHoldGoesThroughTheFileInOrder) {
  RoundQueue queue(10'000);
  for (size_t i = 0; i < 50; ++i) queue.Push(MakeRound(i, 3000));
  EXPECT_LE(queue.memory_bytes(), 10'000u);
  EXPECT_GT(queue.spilled_bytes(), 200'000u);
  for (size_t i = 0; i < 50; ++i) {
    auto round = queue.Pop();
    ASSERT_TRUE(round.has_value() && round->has_value());
    EXPECT_EQ((*round)->rings, MakeRound(i, 3000).rings);
    queue.Recycle(std::move(**round));
    if (i == 25) queue.Push(MakeRound(50, 3000));  // while older ones are in the file
  }
  queue.Close();
  EXPECT_EQ((**queue.Pop()).rings, MakeRound(50, 3000).rings);
}

TEST(RoundQueue, ARoundLargerThanTheLimitIsTakenWhenNothingElseIsThere) {
  RoundQueue queue(1000);
  queue.Push(MakeRound(1, 100'000));
  EXPECT_EQ(queue.spilled_bytes(), 0u);
  EXPECT_EQ((**queue.Pop()).rings, MakeRound(1, 100'000).rings);
  EXPECT_EQ(queue.memory_bytes(), 0u);
}

TEST(RoundQueue, TwoThreadsLoseNothing) {
  RoundQueue queue(50'000);
  constexpr size_t kRounds = 400;
  std::thread writer([&] {
    for (size_t i = 0; i < kRounds; ++i) {
      Round round = queue.TakeEmpty(3);
      const Round content = MakeRound(i, 2000 + i);
      for (size_t ring = 0; ring < 3; ++ring) {
        EXPECT_TRUE(round.rings[ring].empty());
        round.rings[ring] = content.rings[ring];
      }
      queue.Push(std::move(round));
    }
    queue.Close();
  });
  size_t seen = 0;
  for (auto round = queue.Pop(); round && *round; round = queue.Pop(), ++seen) {
    EXPECT_EQ((*round)->rings, MakeRound(seen, 2000 + seen).rings);
    queue.Recycle(std::move(**round));
  }
  writer.join();
  EXPECT_EQ(seen, kRounds);
}

}  // namespace
}  // namespace stackreel::record
