// Many threads, threads that come and go, forked children; and pools that are full.
#ifdef __x86_64__
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"

namespace stackreel::agent {
namespace {

using tracedata::EventKind;
using tracedata::LossReason;
using tracedata::PoolHeader;

OUT_OF_LINE int Loop(int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += leaf(i);
  return sum;
}
int SumOf(int n) { return n * (n - 1) / 2 * 3 + n; }

uint64_t Lost(InProcessAgent& agent, LossReason reason) {
  const auto i = static_cast<uint8_t>(reason);
  uint64_t lost = 0;
  for (const PoolHeader::Losses& row : agent.pool().losses) lost += row.calls[i];
  return lost;
}
uint64_t Recorded(InProcessAgent& agent, uint32_t function) {
  uint64_t count = 0;
  for (uint32_t n = 0; n < agent.pool().chunks; ++n) {
    std::vector<Event> events;
    agent.Decode(n, events);
    for (const Event& event : events) {
      const bool ends = event.kind == EventKind::kCall || event.kind == EventKind::kExit;
      if (ends && event.function == function) ++count;
    }
  }
  return count;
}

// All alive at once, a few more than there is room for: those are counted.
TEST(ThreadsTest, MoreThanThereIsRoomFor) {
  constexpr int kThreads = tracedata::kThreadSlots + 50;
  InProcessAgent agent(kThreads);
  leaf = agent.Call(1, Leaf);
  std::barrier all(kThreads);
  std::atomic<int> right = 0;
  std::vector<pthread_t> threads(kThreads);
  struct Shared {
    std::barrier<>& all;
    std::atomic<int>& right;
  } shared{all, right};
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  for (pthread_t& thread : threads) {
    ASSERT_EQ(pthread_create(
                  &thread, &attributes,
                  [](void* p) -> void* {
                    auto& of_all = *static_cast<Shared*>(p);
                    of_all.all.arrive_and_wait();
                    if (Loop(20) == SumOf(20)) ++of_all.right;
                    of_all.all.arrive_and_wait();
                    if (Loop(20) == SumOf(20)) ++of_all.right;
                    of_all.all.arrive_and_wait();
                    return nullptr;
                  },
                  &shared),
              0);
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(right, 2 * kThreads);
  EXPECT_EQ(Lost(agent, LossReason::kNoThread), 50u * 40);
  EXPECT_EQ(Recorded(agent, 1), 40u * tracedata::kThreadSlots);
}

// Control blocks are used again, and slots of threads that have ended.
TEST(ThreadsTest, Storm) {
  InProcessAgent agent(256);
  leaf = agent.Call(1, Leaf);
  const auto loop = agent.Call(2, Loop);
  constexpr int kRounds = 1500;
  std::atomic<int> right = 0;
  uint64_t seen = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::jthread a([&] { right += loop(5) == SumOf(5); });
    std::jthread b([&] { right += loop(6) == SumOf(6); });
    a.join();
    b.join();
    if (i % 50 == 49) {
      // Of threads that have ended without their slot's being taken the chunks stay owned.
      std::vector<Event> events;
      for (uint32_t n = 0; n < agent.pool().chunks; ++n) {
        if (agent.chunk(n).state == static_cast<uint32_t>(tracedata::ChunkState::kFull)) {
          agent.Decode(n, events);
        }
      }
      seen += static_cast<uint64_t>(std::ranges::count(events, EventKind::kCall, &Event::kind));
      agent.FreeFull();
    }
  }
  EXPECT_EQ(right, 2 * kRounds);
  for (uint32_t n = 0; n < agent.pool().chunks; ++n) {
    std::vector<Event> events;
    agent.Decode(n, events);
    seen += static_cast<uint64_t>(std::ranges::count(events, EventKind::kCall, &Event::kind));
  }
  EXPECT_EQ(seen, uint64_t{13} * kRounds);
  EXPECT_LT(agent.control().slots_used, 100u);
}

// Slots of threads that have ended are taken when there is no other, their open calls as left.
TEST(ThreadsTest, SlotsOfEndedThreadsAreUsedAgain) {
  InProcessAgent agent(256);
  leaf = agent.Call(1, Leaf);
  std::thread([] { Loop(3); }).join();
  agent.control().slots_used = tracedata::kThreadSlots;  // as if all had been in use
  const uint32_t dead = agent.slot(0).tid;
  for (uint32_t i = 1; i < tracedata::kThreadSlots; ++i) {
    agent.slot(i).tid = static_cast<uint32_t>(getpid());
    agent.slot(i).thread_pointer = 0x10000 + i;
  }
  ASSERT_EQ(leaf(1), 4);
  EXPECT_EQ(agent.slot(0).tid, CurrentTid());
  EXPECT_EQ(InProcessAgent::Text(agent.Events(dead)), "C1 C1 C1");
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1");
}

OUT_OF_LINE int Forks(int x) {
  leaf(x);
  const pid_t child = fork();
  if (child != 0) return child;
  leaf(x);
  leaf(x);
  return 0;
}
OUT_OF_LINE int Vforks(int x) {
  // As posix_spawn does: the child shares memory and thread pointer, its parent waits.
  const pid_t child = vfork();
  if (child == 0) {
    leaf(x);
    _exit(7);
  }
  return child;
}
int WaitFor(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -status;
}

// The lock was held by a thread that the child does not have, before any slot was taken.
TEST(ThreadsTest, ChildForkedWhileAnotherThreadTakesTheFirstSlot) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  agent.control().slot_lock = 1;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(leaf(1) == 4 ? 5 : 6);
  agent.control().slot_lock = 0;
  // Who waits for the lock takes no signal but this one.
  int status = -1;
  for (int i = 0; i < 1000 && waitpid(child, &status, WNOHANG) == 0; ++i) usleep(10'000);
  kill(child, SIGKILL);
  ASSERT_TRUE(WIFEXITED(status)) << "it waits for ever";
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

// How many calls of a function have ended. Where they take longer than a word of ticks counts,
// there are more events: new bases, and beginnings told of by themselves.
ptrdiff_t Ended(const std::vector<Event>& events, uint32_t function) {
  return std::ranges::count_if(events, [&](const Event& event) {
    return event.function == function &&
           (event.kind == EventKind::kCall || event.kind == EventKind::kExit);
  });
}

TEST(ThreadsTest, ForkedChildGoesOnByItself) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  const auto forks = agent.Call(2, Forks);
  std::atomic<bool> stop = false;
  // Other threads' slots are of no use in the child, even if they were busy.
  std::jthread other([&] {
    while (!stop) {
      leaf(1);
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  });
  // A thread that only the child has must find a slot, too.
  for (int i = 0; i < 20; ++i) {
    const pid_t child = forks(1);
    if (child == 0) {
      int right = 0;
      std::thread([&] { right = leaf(2); }).join();
      _exit(right == 7 && agent.control().pid == static_cast<uint32_t>(getpid()) ? 42 : 1);
    }
    ASSERT_EQ(WaitFor(child), 42);
    EXPECT_EQ(InProcessAgent::Text(agent.EventsOf(child, static_cast<uint32_t>(child))),
              "C1 C1 C2");
    agent.FreeFull();
  }
  stop = true;
  other.join();
  const auto own = agent.Events(CurrentTid());
  EXPECT_EQ(Ended(own, 1), 20);
  EXPECT_EQ(Ended(own, 2), 20);
  EXPECT_EQ(own.back().function, 2u);
}

TEST(ThreadsTest, ForkInAForkedChild) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  const auto forks = agent.Call(2, Forks);
  const pid_t child = forks(1);
  if (child == 0) {
    const pid_t grandchild = forks(2);
    if (grandchild == 0) _exit(static_cast<int>(agent.control().fork_generation));
    _exit(WaitFor(grandchild));
  }
  EXPECT_EQ(WaitFor(child), 2);
  EXPECT_EQ(agent.control().fork_generation, 0u);
}

TEST(ThreadsTest, VforkedChildIsItsParentsThread) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  const auto vforks = agent.Call(2, Vforks);
  for (int i = 0; i < 50; ++i) ASSERT_EQ(WaitFor(vforks(1)), 7);
  EXPECT_EQ(Ended(agent.Events(CurrentTid()), 1), 50);
  EXPECT_EQ(Ended(agent.Events(CurrentTid()), 2), 50);
  EXPECT_EQ(agent.control().fork_generation, 0u);
}

// Nobody empties the chunks, and threads do not wait.
TEST(ThreadsTest, FullPoolDrops) {
  InProcessAgent agent(2, tracedata::OnFull::kDrop);
  leaf = agent.Call(1, Leaf);
  const auto loop = agent.Call(2, Loop);
  constexpr int kCalls = 20'000;
  EXPECT_EQ(loop(kCalls), SumOf(kCalls));
  const uint64_t recorded = Recorded(agent, 1);
  EXPECT_GT(recorded, 5000u);
  EXPECT_EQ(Lost(agent, LossReason::kNoSpace) + recorded, kCalls + 1u);
  const uint64_t lost = Lost(agent, LossReason::kNoSpace);
  // When there is room again, there is a gap in the sequence.
  EXPECT_EQ(agent.FreeFull(), 2u);
  EXPECT_EQ(loop(3), SumOf(3));
  EXPECT_EQ(agent.chunk(0).sequence + agent.chunk(1).sequence, 3u + agent.chunk(1).sequence);
  const auto events = agent.Events(CurrentTid());
  ASSERT_EQ(InProcessAgent::Text(events), "l3 C1 C1 C1 C2");
  EXPECT_EQ(events[0].third, lost);
}

InProcessAgent* agent_of_gap = nullptr;
OUT_OF_LINE int AroundGap(int x) {
  const int sum = Loop(20'000);
  agent_of_gap->FreeFull();
  return sum + leaf(x);
}

// An open call is told of again behind a gap, as its end may be what was dropped.
TEST(ThreadsTest, OpenCallsBeginAnewBehindAGap) {
  InProcessAgent agent(2, tracedata::OnFull::kDrop);
  agent_of_gap = &agent;
  leaf = agent.Call(1, Leaf);
  const auto around = agent.Call(3, AroundGap);
  EXPECT_EQ(around(2), SumOf(20'000) + 7);
  const auto events = agent.Events(CurrentTid());
  ASSERT_EQ(InProcessAgent::Text(events), "l3 C1 C3");
  EXPECT_LT(events[2].time, events[1].time);
}

TEST(ThreadsTest, FullPoolWaits) {
  InProcessAgent agent(2);
  leaf = agent.Call(1, Leaf);
  std::atomic<bool> stop = false;
  uint64_t seen = 0;
  std::jthread consumer([&] {
    while (!stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (uint32_t n = 0; n < 2; ++n) {
        if (agent.chunk(n).state != static_cast<uint32_t>(tracedata::ChunkState::kFull)) continue;
        std::vector<Event> events;
        agent.Decode(n, events);
        for (const Event& event : events) {
          seen += event.kind == EventKind::kCall || event.kind == EventKind::kExit;
        }
      }
      agent.FreeFull();
    }
  });
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&] { right += Loop(20'000) == SumOf(20'000); });
  }
  EXPECT_EQ(right, 3);
  stop = true;
  consumer.join();
  EXPECT_EQ(seen + Recorded(agent, 1), 60'000u);
  EXPECT_EQ(Lost(agent, LossReason::kNoSpace), 0u);
}

// A tracer that has died empties nothing: after a second nobody waits any more.
TEST(ThreadsTest, DeadTracerIsNotWaitedFor) {
  InProcessAgent agent(2);
  leaf = agent.Call(1, Leaf);
  const auto start = std::chrono::steady_clock::now();
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] { right += Loop(20'000) == SumOf(20'000); });
  }
  EXPECT_EQ(right, 4);
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took, std::chrono::milliseconds(900));
  EXPECT_LT(took, std::chrono::seconds(20));
  EXPECT_EQ(Lost(agent, LossReason::kNoSpace) + Recorded(agent, 1), 80'000u);
  EXPECT_GT(Lost(agent, LossReason::kNoSpace), 0u);
}

TEST(ThreadsTest, DetachedIsNotWaitedFor) {
  InProcessAgent agent(1);
  agent.control().tracer_pid = 0;
  leaf = agent.Call(1, Leaf);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Loop(20'000), SumOf(20'000));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(900));
}

// Times count from a new base when 32 bits of ticks have gone by; open calls get their kEntry.
TEST(ThreadsTest, NewBase) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  const auto loop = agent.Call(2, Loop);
  EXPECT_EQ(loop(1), 1);
  // As if the chunk had begun long ago.
  constexpr uint64_t kLong = uint64_t{1} << 33;
  agent.OwnSlot()->base -= kLong;
  agent.chunk(0).base -= kLong;
  const uint64_t before = __builtin_ia32_rdtsc();
  EXPECT_EQ(loop(2), SumOf(2));
  const uint64_t after = __builtin_ia32_rdtsc();
  const auto events = agent.Events(CurrentTid());
  EXPECT_EQ(InProcessAgent::Text(events), "C1 C2 B0 E2 E1 X1 C1 X2");
  for (size_t i = 2; i < events.size(); ++i) {
    EXPECT_GE(events[i].time, before);
    EXPECT_LE(events[i].time, after);
  }
}

}  // namespace
}  // namespace stackreel::agent
#endif
