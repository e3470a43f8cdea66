// Calls that do not return as calls do: tail calls, longjmp, exceptions, fibers, threads that end.
#ifdef __x86_64__
#include <execinfo.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <ucontext.h>
#include <unwind.h>

#include <atomic>
#include <semaphore>
#include <stdexcept>
#include <thread>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"

namespace stackreel::agent {

extern "C" {
int AgentTestTail(int x);  // tail-calls *agent_test_tail_target with x - 1
int (*agent_test_tail_target)(int) = nullptr;
int AgentTestTailLoop(int x);  // tail-calls *agent_test_tail_loop with x - 1 until that is 0
int (*agent_test_tail_loop)(int) = nullptr;
void* __cxa_begin_catch(void*);
}
__asm__(R"(
  .text
AgentTestTail:
  nopl 0(%rax,%rax,1)
  dec %edi
  jmp *agent_test_tail_target(%rip)
AgentTestTailLoop:
  nopl 0(%rax,%rax,1)
  dec %edi
  jz 1f
  jmp *agent_test_tail_loop(%rip)
1:mov $77, %eax
  ret
)");

namespace {

using tracedata::EventKind;

// Every kExit and kLeft ends the innermost call that is open.
void ExpectNested(const std::vector<Event>& events, size_t open_at_end = 0) {
  std::vector<uint32_t> open;
  for (const Event& event : events) {
    if (event.kind == EventKind::kEntry) open.push_back(event.function);
    if (event.kind != EventKind::kExit && event.kind != EventKind::kLeft) continue;
    ASSERT_FALSE(open.empty());
    ASSERT_EQ(open.back(), event.function);
    open.pop_back();
  }
  EXPECT_EQ(open.size(), open_at_end);
}
std::ptrdiff_t CountOf(const std::vector<Event>& events, EventKind kind, uint32_t function) {
  return std::ranges::count_if(
      events, [&](const Event& event) { return event.kind == kind && event.function == function; });
}

class DeparturesTest : public testing::Test {
 protected:
  ~DeparturesTest() override {
    Called<int(int)>::ResetAll();
    Called<void()>::ResetAll();
  }
};

TEST_F(DeparturesTest, TailCallsNest) {
  InProcessAgent agent;
  const auto leaf_stub = agent.Call(1, Leaf);
  agent_test_tail_target = leaf_stub;
  const auto tail = agent.Call(2, AgentTestTail);
  EXPECT_EQ(tail(6), 16);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1 C2");
}

TEST_F(DeparturesTest, ChainOfTailCallsThatIsTooLong) {
  InProcessAgent agent;
  agent_test_tail_loop = agent.Call(3, AgentTestTailLoop);
  EXPECT_EQ(agent_test_tail_loop(100'000), 77);
  const auto events = agent.Events(CurrentTid());
  EXPECT_EQ(CountOf(events, EventKind::kCall, 3), tracedata::kOpenCalls - 1);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

jmp_buf target;
OUT_OF_LINE int Jumper(int x) {
  if (x > 0) longjmp(target, x);
  return x;
}
Called<int(int)> jumper(Jumper);
OUT_OF_LINE int CallsJumper(int x) { return jumper(x) + 1; }
Called<int(int)> calls_jumper(CallsJumper);
OUT_OF_LINE int Lands(int x) {
  volatile int sum = 0;
  static int round;  // setjmp may undo a local variable's changes
  for (round = 1; round <= x; ++round) {
    const int value = setjmp(target);
    if (value == 0) {
      calls_jumper(round);
    } else {
      sum = sum + value;
    }
  }
  return sum + calls_jumper(0);
}

void LoopOfLongjmp(InProcessAgent& agent) {
  jumper = agent.Call(1, Jumper);
  calls_jumper = agent.Call(2, CallsJumper);
  const auto lands = agent.Call(3, Lands);
  constexpr int kRounds = 10'000;
  EXPECT_EQ(lands(kRounds), kRounds * (kRounds + 1) / 2 + 1);
  const auto events = agent.Events(CurrentTid());
  ExpectNested(events);
  EXPECT_EQ(CountOf(events, EventKind::kLeft, 1), kRounds);
  EXPECT_EQ(CountOf(events, EventKind::kLeft, 2), kRounds);
  EXPECT_EQ(CountOf(events, EventKind::kLeft, 3), 0);
  EXPECT_EQ(events.back().function, 3u);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}
TEST_F(DeparturesTest, LongjmpUnannounced) {
  InProcessAgent agent;
  LoopOfLongjmp(agent);
}
TEST_F(DeparturesTest, LongjmpAnnounced) {
  InProcessAgent agent;
  agent.Patch(StubKind::kBeforeUnwind, 0, longjmp);
  LoopOfLongjmp(agent);
  EXPECT_EQ(agent.OwnSlot()->parked_used, 0u);
}

// longjmp past calls at ever other depths: what may still be returned to stays bounded.
OUT_OF_LINE int JumpFrom(int n);
Called<int(int)> jump_from(JumpFrom);
int JumpFrom(int n) {
  if (n == 0) longjmp(target, 1);
  volatile char space[64] = {};
  return jump_from(n - 1) + space[n % 64];
}
TEST_F(DeparturesTest, LongjmpFromManyDepths) {
  InProcessAgent agent(512);
  jump_from = agent.Call(1, JumpFrom);
  const auto leaf_stub = agent.Call(2, Leaf);
  static int n;  // setjmp may undo a local variable's changes
  for (n = 1; n < 1500; ++n) {
    if (setjmp(target) == 0) jump_from(n);
    EXPECT_EQ(leaf_stub(n), 3 * n + 1);
  }
  EXPECT_EQ(agent.OpenCalls(), 0u);
  const auto events = agent.Events(CurrentTid());
  ExpectNested(events);
  EXPECT_EQ(CountOf(events, EventKind::kCall, 2) + CountOf(events, EventKind::kExit, 2), 1499);
}

struct CallsLeafWhenItGoes {
  ~CallsLeafWhenItGoes();
};
Called<int(int)> leaf_of_cleanup(Leaf);
CallsLeafWhenItGoes::~CallsLeafWhenItGoes() { leaf_of_cleanup(1); }

OUT_OF_LINE int Thrower(int x) {
  if (x > 0) throw std::runtime_error(std::to_string(x));
  return x;
}
Called<int(int)> thrower(Thrower);
OUT_OF_LINE int HasCleanup(int x) {
  const CallsLeafWhenItGoes cleanup;
  return thrower(x) + 1;
}
Called<int(int)> has_cleanup(HasCleanup);
OUT_OF_LINE int Catches(int x) {
  try {
    return has_cleanup(x);
  } catch (const std::runtime_error& error) {
    return leaf_of_cleanup(std::atoi(error.what()));
  }
}
Called<int(int)> catches(Catches);
OUT_OF_LINE int AroundCatches(int x) { return catches(x) + 1; }

void PatchUnwinder(InProcessAgent& agent) {
  agent.Patch(StubKind::kBeforeUnwind, 0, _Unwind_RaiseException);
  agent.Patch(StubKind::kBeforeUnwind, 0, _Unwind_Resume);
  agent.Patch(StubKind::kBeforeUnwind, 0, _Unwind_ForcedUnwind);
  agent.Patch(StubKind::kBeforeUnwind, 0, _Unwind_Backtrace);
}
void ThrowAndCatch(InProcessAgent& agent) {
  thrower = agent.Call(1, Thrower);
  has_cleanup = agent.Call(2, HasCleanup);
  leaf_of_cleanup = agent.Call(3, Leaf);
  catches = agent.Call(4, Catches);
  const auto around = agent.Call(5, AroundCatches);
  EXPECT_EQ(around(0), 2);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1 C3 C2 C4 C5");
  constexpr int kRounds = 2000;
  for (int i = 1; i <= kRounds; ++i) ASSERT_EQ(around(i), 3 * i + 2);
  const auto events = agent.Events(CurrentTid());
  ExpectNested(events);
  EXPECT_EQ(CountOf(events, EventKind::kLeft, 1), kRounds);
  EXPECT_EQ(CountOf(events, EventKind::kLeft, 2), kRounds);
  EXPECT_EQ(CountOf(events, EventKind::kLeft, 4), 0);
  EXPECT_EQ(CountOf(events, EventKind::kExit, 4), kRounds);
  EXPECT_EQ(CountOf(events, EventKind::kExit, 5), kRounds);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}
TEST_F(DeparturesTest, Exceptions) {
  InProcessAgent agent;
  PatchUnwinder(agent);
  agent.Patch(StubKind::kAfterCatch, 0, __cxa_begin_catch);
  ThrowAndCatch(agent);
}
TEST_F(DeparturesTest, ExceptionsWhoseCatchIsNotSeen) {
  InProcessAgent agent;
  PatchUnwinder(agent);
  ThrowAndCatch(agent);
}

void* frames[64];
int frame_count = 0;
OUT_OF_LINE int Walks(int x) {
  frame_count = backtrace(frames, 64);
  return x + 1;
}
Called<int(int)> walks(Walks);
OUT_OF_LINE int CallsWalks(int x) { return walks(x) + 1; }
Called<int(int)> calls_walks(CallsWalks);
OUT_OF_LINE int AroundWalks(int x) { return calls_walks(x) + leaf_of_cleanup(x); }

TEST_F(DeparturesTest, Backtrace) {
  AroundWalks(1);
  const int true_count = frame_count;
  InProcessAgent agent;
  PatchUnwinder(agent);
  walks = agent.Call(1, Walks);
  calls_walks = agent.Call(2, CallsWalks);
  leaf_of_cleanup = agent.Call(3, Leaf);
  const auto around = agent.Call(4, AroundWalks);
  EXPECT_EQ(around(1), 3 + 4);
  EXPECT_EQ(frame_count, true_count);
  const auto events = agent.Events(CurrentTid());
  ExpectNested(events);
  EXPECT_EQ(events.back().function, 4u);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

OUT_OF_LINE int EndsThread(int x) {
  if (x > 0) pthread_exit(nullptr);
  return x;
}
Called<int(int)> ends_thread(EndsThread);
OUT_OF_LINE int AroundEndsThread(int x) {
  const CallsLeafWhenItGoes cleanup;
  return ends_thread(x) + 1;
}
Called<int(int)> around_ends_thread(AroundEndsThread);

TEST_F(DeparturesTest, PthreadExit) {
  InProcessAgent agent;
  PatchUnwinder(agent);
  leaf_of_cleanup = agent.Call(3, Leaf);
  ends_thread = agent.Call(1, EndsThread);
  around_ends_thread = agent.Call(2, AroundEndsThread);
  for (int i = 0; i < 50; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(
                  &thread, nullptr, [](void*) -> void* { return around_ends_thread(1), nullptr; },
                  nullptr),
              0);
    pthread_join(thread, nullptr);
  }
  uint64_t calls = 0;
  for (uint32_t i = 0; i < agent.pool().chunks; ++i) {
    if (agent.chunk(i).used == 0) continue;
    std::vector<Event> events;
    agent.Decode(i, events);
    calls += CountOf(events, EventKind::kCall, 3);
    EXPECT_EQ(CountOf(events, EventKind::kLeft, 1), 1);
  }
  EXPECT_EQ(calls, 50u);
}

OUT_OF_LINE int Waits(int x) {
  while (x > 0) pause();
  return x;
}
Called<int(int)> waits(Waits);
OUT_OF_LINE int AroundWaits(int x) {
  const CallsLeafWhenItGoes cleanup;
  return waits(x) + 1;
}
Called<int(int)> around_waits(AroundWaits);

TEST_F(DeparturesTest, PthreadCancel) {
  InProcessAgent agent;
  PatchUnwinder(agent);
  leaf_of_cleanup = agent.Call(3, Leaf);
  waits = agent.Call(1, Waits);
  around_waits = agent.Call(2, AroundWaits);
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    ASSERT_EQ(
        pthread_create(
            &thread, nullptr, [](void*) -> void* { return around_waits(1), nullptr; }, nullptr),
        0);
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    EXPECT_EQ(result, PTHREAD_CANCELED);
  }
}

// Fibers. Each calls a recorded function that calls others and switches in the middle.
struct Fiber {
  ucontext_t context;
  ucontext_t* back = nullptr;
  int rounds = 0;
  int64_t sum = 0;
  bool done = false;
  std::vector<char> stack;
};
thread_local Fiber* running = nullptr;
OUT_OF_LINE Fiber* Running() {
  Fiber* volatile fiber = running;
  return fiber;
}
OUT_OF_LINE void Yield() {
  Fiber* fiber = Running();
  swapcontext(&fiber->context, fiber->back);
}
Called<void()> yield(Yield);
OUT_OF_LINE int Works(int x);
Called<int(int)> works(Works);
int Works(int x) {
  int sum = leaf_of_cleanup(x);
  if (x % 3 == 0) yield();
  if (x > 0) sum += works(x - 1);
  if (x % 2 == 0) yield();
  return sum;
}
int64_t WorkOf(int rounds) {
  int64_t sum = 0;
  for (int i = 0; i < rounds; ++i) {
    for (int x = 0; x <= i % 7; ++x) sum += 3 * x + 1;
  }
  return sum;
}
void FiberMain() {
  Fiber* fiber = Running();
  for (int i = 0; i < fiber->rounds; ++i) fiber->sum += works(i % 7);
  fiber->done = true;
  yield();
}
void Start(Fiber& fiber, int rounds) {
  fiber.rounds = rounds;
  fiber.stack.resize(256 << 10);
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.data();
  fiber.context.uc_stack.ss_size = fiber.stack.size();
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, FiberMain, 0);
}
OUT_OF_LINE int Resume(Fiber* fiber) {
  ucontext_t here;
  fiber->back = &here;
  running = fiber;
  swapcontext(&here, &fiber->context);
  return fiber->done ? 0 : 1;
}

void SetUpFibers(InProcessAgent& agent) {
  leaf_of_cleanup = agent.Call(1, Leaf);
  works = agent.Call(2, Works);
  yield = agent.Call(3, Yield);
}

TEST_F(DeparturesTest, FibersOfOneThread) {
  InProcessAgent agent;
  SetUpFibers(agent);
  const auto resume = agent.Call(4, Resume);
  std::vector<Fiber> fibers(20);
  for (size_t i = 0; i < fibers.size(); ++i) Start(fibers[i], 50 + static_cast<int>(i));
  for (bool any = true; any;) {
    any = false;
    for (Fiber& fiber : fibers) any = (!fiber.done && resume(&fiber) != 0) || any;
  }
  for (const Fiber& fiber : fibers) EXPECT_EQ(fiber.sum, WorkOf(fiber.rounds));
  EXPECT_EQ(agent.OwnSlot()->lost[1], 0u);
}

// Handed from thread to thread between any two switches.
TEST_F(DeparturesTest, FibersThatMigrate) {
  InProcessAgent agent;
  SetUpFibers(agent);
  const auto resume = agent.Call(4, Resume);
  constexpr int kThreads = 4;
  std::vector<Fiber> fibers(8);
  for (Fiber& fiber : fibers) Start(fiber, 200);
  std::vector<std::atomic<int>> turn(fibers.size());
  std::vector<std::jthread> threads;
  std::atomic<size_t> done = 0;
  for (int me = 0; me < kThreads; ++me) {
    threads.emplace_back([&, me] {
      for (size_t i = 0; done < fibers.size(); i = (i + 1) % fibers.size()) {
        if (turn[i] != me) {
          std::this_thread::yield();
          continue;
        }
        if (resume(&fibers[i]) != 0) {
          turn[i] = (me + 1) % kThreads;
        } else {
          turn[i] = -1;
          ++done;
        }
      }
    });
  }
  threads.clear();
  for (const Fiber& fiber : fibers) EXPECT_EQ(fiber.sum, WorkOf(fiber.rounds));
}

// A fiber that is given up in the middle, its stack unmapped, before an exception restores return
// addresses: no word of it may be touched.
TEST_F(DeparturesTest, FiberWhoseStackIsGone) {
  InProcessAgent agent;
  PatchUnwinder(agent);
  SetUpFibers(agent);
  const auto resume = agent.Call(4, Resume);
  constexpr size_t kSize = 256 << 10;
  for (int i = 0; i < 200; ++i) {
    Fiber fiber;
    Start(fiber, 10);
    void* const stack =
        mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    fiber.context.uc_stack.ss_sp = stack;
    fiber.context.uc_stack.ss_size = kSize;
    makecontext(&fiber.context, FiberMain, 0);
    EXPECT_EQ(resume(&fiber), 1);
    munmap(stack, kSize);
    EXPECT_EQ(Catches(3), 10);
  }
}

// Fibers that never come back, each on a stack of its own: what they had open is dead once the
// stack is gone, and does not fill the table for ever.
TEST_F(DeparturesTest, ManyFibersThatAreGivenUp) {
  InProcessAgent agent;
  SetUpFibers(agent);
  const auto resume = agent.Call(4, Resume);
  constexpr size_t kSize = 32 << 10;
  constexpr int kFibers = 3000;
  auto* const stacks = static_cast<uint8_t*>(
      mmap(nullptr, kFibers * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (int i = 0; i < kFibers; ++i) {
    Fiber fiber;
    Start(fiber, 10);
    fiber.context.uc_stack.ss_sp = stacks + i * kSize;
    fiber.context.uc_stack.ss_size = kSize;
    makecontext(&fiber.context, FiberMain, 0);
    ASSERT_EQ(resume(&fiber), 1);
    munmap(stacks + i * kSize, kSize);
  }
  const auto events = agent.Events(CurrentTid());
  EXPECT_EQ(CountOf(events, EventKind::kCall, 4) + CountOf(events, EventKind::kExit, 4), kFibers);
  EXPECT_EQ(agent.OwnSlot()->lost[static_cast<uint8_t>(tracedata::LossReason::kTooDeep)], 0u);
}

}  // namespace
}  // namespace stackreel::agent
#endif
