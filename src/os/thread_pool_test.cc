#include "os/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>
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

TEST(ThreadPool, StartedWorkIsDoneWhenFinished) {
  for (const size_t threads : {1u, 2u, 5u}) {
    auto pool = MakeThreadPool(threads);
    for (int round = 0; round < 100; ++round) {
      std::vector<std::atomic<int>> runs(50);
      pool->Start(runs.size(), [&](size_t index, size_t) { ++runs[index]; });
      pool->Finish();
      for (const auto& n : runs) ASSERT_EQ(n, 1);
      std::atomic<int> more = 0;
      pool->ParallelFor(7, [&](size_t, size_t) { ++more; });
      ASSERT_EQ(more, 7);
    }
  }
}

TEST(ThreadPool, OthersBeginBeforeTheCallerTakesPart) {
  auto pool = MakeThreadPool(2);
  std::atomic<bool> began = false;
  pool->Start(1, [&](size_t, size_t worker) { began = worker == 1; });
  while (!began) std::this_thread::yield();
  pool->Finish();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they need the address space
// In a process of its own, whose address space has room for a few threads' stacks only.
[[noreturn]] void RunWithoutRoomForThreads() {
  const rlimit limit = {.rlim_cur = rlim_t{256} << 20, .rlim_max = rlim_t{256} << 20};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
  auto pool = MakeThreadPool(1000);
  std::atomic<int> runs = 0;
  pool->ParallelFor(5000, [&](size_t, size_t worker) {
    if (worker < pool->concurrency()) ++runs;
  });
  pool.reset();
  std::vector<std::thread> threads;
  while (true) {
    auto thread = StartThread([] { pause(); });
    if (!thread) break;
    threads.push_back(*std::move(thread));
  }
  _exit(runs == 5000 && threads.size() < 1000 ? 0 : 1);
}
TEST(ThreadPool, MakesDoWithFewerThreadsThanAskedFor) {
  EXPECT_EXIT(RunWithoutRoomForThreads(), testing::ExitedWithCode(0), "");
}
#endif

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
