#include "os/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace stackreel::os {
namespace {

TEST(ThreadPool, RunsEachIndexOnceAndNoWorkerTwiceAtATime) {
  for (const size_t threads : {1u, 2u, 5u}) {
    auto pool = MakeThreadPool(threads);
    ASSERT_EQ(pool->concurrency(), threads);
    for (const size_t count : {0u, 1u, 3u, 1000u}) {
      std::vector<std::atomic<int>> runs(count);
      std::vector<std::atomic<int>> inside(threads);
      std::atomic<int> overlaps = 0;
      pool->ParallelFor(count, [&](size_t index, size_t worker) {
        if (inside[worker].fetch_add(1) != 0) ++overlaps;
        ++runs[index];
        --inside[worker];
      });
      for (const auto& n : runs) EXPECT_EQ(n, 1);
      EXPECT_EQ(overlaps, 0);
    }
  }
}

TEST(ThreadPool, ReallyRunsSeveralAtOnce) {
  auto pool = MakeThreadPool(3);
  std::atomic<int> waiting = 0;
  // Each call returns only when all three run, so one thread alone would never end.
  pool->ParallelFor(3, [&](size_t, size_t) {
    ++waiting;
    waiting.notify_all();
    for (int seen = waiting.load(); seen < 3; seen = waiting.load()) waiting.wait(seen);
  });
  EXPECT_EQ(waiting, 3);
}

TEST(ThreadPool, ZeroMeansAllCpus) { EXPECT_GE(MakeThreadPool(0)->concurrency(), 1u); }

}  // namespace
}  // namespace stackreel::os
