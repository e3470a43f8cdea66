#include "tracer/chunk_collector.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <ranges>

namespace stackreel::tracer {
namespace {

void SetChunk(Pool& pool, uint32_t i, uint32_t sequence) {
  tracedata::ChunkHeader& header = pool.chunk(i);
  header.pid = static_cast<uint32_t>(getpid());
  header.tid = static_cast<uint32_t>(getpid());
  header.sequence = sequence;
  header.used = sizeof(uint32_t);
  header.state = static_cast<uint32_t>(tracedata::ChunkState::kFull);
}

// Threads seen when a thread's chunks of these numbers lie in the pool in this order.
uint64_t ThreadsOf(const std::vector<uint32_t>& sequences) {
  const std::string directory = ::testing::TempDir() + "/chunk_collector_test.trace";
  std::filesystem::remove_all(directory);
  auto output = TraceOutput::Create(directory, 1);
  EXPECT_TRUE(output.has_value());
  auto pool = Pool::Make(os::Fd(memfd_create("pool", MFD_CLOEXEC)), 8);
  EXPECT_TRUE(pool.has_value() && (*pool)->Fill().has_value());
  for (uint32_t i = 0; i < sequences.size(); ++i) SetChunk(**pool, i, sequences[i]);
  ChunkCollector collector(**pool, **output, static_cast<uint32_t>(getpid()));
  EXPECT_TRUE(collector.TakeOwned({}, /*all=*/true).has_value());
  std::filesystem::remove_all(directory);
  return collector.counts().threads;
}

TEST(ChunkCollector, OneThreadIsOneInWhateverOrderItsChunksLie) {
  EXPECT_EQ(ThreadsOf({0, 1, 2}), 1U);
  EXPECT_EQ(ThreadsOf({1, 0}), 1U);
  EXPECT_EQ(ThreadsOf({2, 1, 0}), 1U);
}

TEST(ChunkCollector, AnotherThreadOfTheSameIdIsAnother) { EXPECT_EQ(ThreadsOf({0, 1, 0, 1}), 2U); }

tracedata::ChunkState StateOf(Pool& pool, uint32_t i) {
  return static_cast<tracedata::ChunkState>(pool.chunk(i).state.load());
}

TEST(ChunkCollector, ChunksOfChildrenThatHaveEndedBecomeFree) {
  const std::string directory = ::testing::TempDir() + "/ended_children_test.trace";
  std::filesystem::remove_all(directory);
  auto output = TraceOutput::Create(directory, 1);
  ASSERT_TRUE(output.has_value());
  auto pool = Pool::Make(os::Fd(memfd_create("pool", MFD_CLOEXEC)), 8);
  ASSERT_TRUE(pool.has_value() && (*pool)->Fill().has_value());
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  siginfo_t unused;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(ended), &unused, WEXITED | WNOWAIT), 0);
  const auto own = [&](uint32_t i, uint32_t pid) {
    SetChunk(**pool, i, 0);
    (*pool)->chunk(i).pid = pid;
    (*pool)->chunk(i).state = static_cast<uint32_t>(tracedata::ChunkState::kOwned);
  };
  const auto self = static_cast<uint32_t>(getpid());
  for (uint32_t i = 0; i < 3; ++i) own(i, static_cast<uint32_t>(ended));
  own(3, static_cast<uint32_t>(getppid()));
  own(4, self);
  own(5, 0);  // by somebody who has just taken it
  ChunkCollector collector(**pool, **output, self);
  collector.Start();
  const auto all_free = [&] {
    return std::ranges::all_of(std::views::iota(0U, 3U), [&](uint32_t i) {
      return StateOf(**pool, i) == tracedata::ChunkState::kFree;
    });
  };
  for (int i = 0; i < 20'000 && !all_free(); ++i) usleep(1000);
  EXPECT_TRUE(all_free());
  EXPECT_TRUE(collector.Stop().has_value());
  for (uint32_t i = 3; i < 6; ++i) {
    EXPECT_EQ(StateOf(**pool, i), tracedata::ChunkState::kOwned) << i;
  }
  waitpid(ended, nullptr, 0);
  std::filesystem::remove_all(directory);
}

// A thread that owns chunk 0 with `words`, of which `untold` was seen before they were written: the
// entries that the trace gets besides.
uint64_t EntriesAdded(const std::vector<uint32_t>& words, std::vector<UntoldCall> untold) {
  const std::string directory = ::testing::TempDir() + "/untold_test.trace";
  std::filesystem::remove_all(directory);
  auto output = TraceOutput::Create(directory, 1);
  EXPECT_TRUE(output.has_value());
  auto pool = Pool::Make(os::Fd(memfd_create("pool", MFD_CLOEXEC)), 8);
  EXPECT_TRUE(pool.has_value() && (*pool)->Fill().has_value());
  const auto pid = static_cast<uint32_t>(getpid());
  ChunkCollector collector(**pool, **output, pid);
  EXPECT_TRUE(
      collector
          .NoteUntold([&]() -> Result<UntoldCalls> { return UntoldCalls{{{pid, pid}, untold}}; })
          .has_value());
  SetChunk(**pool, 0, 0);
  tracedata::ChunkHeader& header = (*pool)->chunk(0);
  header.base = 1000;
  header.used = static_cast<uint32_t>(words.size() * sizeof(uint32_t));
  header.state = static_cast<uint32_t>(tracedata::ChunkState::kOwned);
  std::copy_n(reinterpret_cast<const uint8_t*>(words.data()), words.size() * sizeof(uint32_t),
              const_cast<uint8_t*>((*pool)->words(0).data()));
  EXPECT_TRUE(collector.TakeOwned({}, /*all=*/false).has_value());
  std::filesystem::remove_all(directory);
  EXPECT_EQ(collector.counts().threads, 1U);
  return collector.counts().entries;
}

TEST(ChunkCollector, WhatWasOpenAtTheLastLookIsOpenAtTheEnd) {
  using tracedata::EventHead;
  using tracedata::EventKind;
  const std::vector<UntoldCall> seen = {{.start = 1010, .function = 7},
                                        {.start = 1020, .function = 8}};
  EXPECT_EQ(EntriesAdded({}, seen), 2U) << "it has written nothing";
  EXPECT_EQ(EntriesAdded({EventHead(EventKind::kCall, 9), 15, 1}, seen), 2U) << "another's end";
  EXPECT_EQ(EntriesAdded({EventHead(EventKind::kCall, 8), 20, 30}, seen), 1U) << "one has ended";
  EXPECT_EQ(EntriesAdded({EventHead(EventKind::kCall, 8), 21, 30}, seen), 2U) << "a later call";
  EXPECT_EQ(EntriesAdded({EventHead(EventKind::kEntry, 7), 10, EventHead(EventKind::kEntry, 8), 20},
                         seen),
            2U)
      << "they were told of";
  EXPECT_EQ(EntriesAdded({EventHead(EventKind::kBase, 0), 1015, 0, EventHead(EventKind::kCall, 8),
                          5, 30, EventHead(EventKind::kCall, 7), 0, 2},
                         {{.start = 1015, .function = 7}, {.start = 1020, .function = 8}}),
            0U)
      << "times count from the last base";
  EXPECT_EQ(EntriesAdded({EventHead(EventKind::kLost, 3), 30, 4}, seen), 0U)
      << "their ends may have been lost";
}

TEST(ChunkCollector, CountsWhatStandsInChunksThatAreOwned) {
  const std::string directory = ::testing::TempDir() + "/owned_test.trace";
  std::filesystem::remove_all(directory);
  auto output = TraceOutput::Create(directory, 1);
  ASSERT_TRUE(output.has_value());
  auto pool = Pool::Make(os::Fd(memfd_create("pool", MFD_CLOEXEC)), 8);
  ASSERT_TRUE(pool.has_value() && (*pool)->Fill().has_value());
  ChunkCollector collector(**pool, **output, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(collector.counts().calls, 0U);
  SetChunk(**pool, 3, 0);
  const uint32_t words[] = {tracedata::EventHead(tracedata::EventKind::kCall, 7), 10, 5,
                            tracedata::EventHead(tracedata::EventKind::kCall, 8), 20, 5};
  std::memcpy(const_cast<uint8_t*>((*pool)->words(3).data()), words, sizeof(words));
  (*pool)->chunk(3).used = sizeof(words);
  (*pool)->chunk(3).state = static_cast<uint32_t>(tracedata::ChunkState::kOwned);
  EXPECT_EQ(collector.counts().calls, 2U);
  EXPECT_EQ(collector.counts().threads, 1U);
  EXPECT_TRUE(collector.TakeOwned({}, /*all=*/true).has_value());
  EXPECT_EQ(collector.counts().calls, 2U) << "taken, and not counted twice";
  EXPECT_EQ(collector.counts().threads, 1U);
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace stackreel::tracer
