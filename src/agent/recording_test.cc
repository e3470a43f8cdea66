// Calls that return: what is recorded of them, and that nothing else changes.
#ifdef __x86_64__
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <cstdarg>
#include <numeric>
#include <thread>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"

namespace stackreel::agent {
namespace {

using tracedata::EventKind;

OUT_OF_LINE int Middle(int x) { return leaf(x) + leaf(x + 1); }
Called<int(int)> middle(Middle);

OUT_OF_LINE int Outer(int x) { return middle(x) * 2; }

OUT_OF_LINE int Fibonacci(int n);
Called<int(int)> fibonacci(Fibonacci);
int Fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

OUT_OF_LINE int Depth(int n);
Called<int(int)> depth(Depth);
int Depth(int n) { return n == 0 ? 0 : depth(n - 1) + 1; }

class RecordingTest : public testing::Test {
 protected:
  ~RecordingTest() override { Called<int(int)>::ResetAll(); }
};

TEST_F(RecordingTest, CallsAreWrittenAsTheyEnd) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  middle = agent.Call(2, Middle);
  const auto outer = agent.Call(3, Outer);
  EXPECT_EQ(outer(5), (16 + 19) * 2);
  const auto events = agent.Events(CurrentTid());
  ASSERT_EQ(InProcessAgent::Text(events), "C1 C1 C2 C3");
  EXPECT_LE(events[3].time, events[2].time);
  EXPECT_LE(events[2].time, events[0].time);
  EXPECT_LE(events[0].time + events[0].third, events[1].time);
  EXPECT_LE(events[1].time + events[1].third, events[2].time + events[2].third);
  EXPECT_LE(events[2].time + events[2].third, events[3].time + events[3].third);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

TEST_F(RecordingTest, Recursion) {
  InProcessAgent agent;
  fibonacci = agent.Call(7, Fibonacci);
  EXPECT_EQ(fibonacci(15), 610);
  const auto events = agent.Events(CurrentTid());
  EXPECT_EQ(events.size(), 1973u);
  EXPECT_TRUE(std::ranges::all_of(
      events, [](const Event& event) { return event.kind == EventKind::kCall; }));
}

TEST_F(RecordingTest, NothingIsRecordedWhileItIsOff) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  agent.control().recording = 0;
  EXPECT_EQ(leaf(1), 4);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "");
  agent.control().recording = 1;
  EXPECT_EQ(leaf(1), 4);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1");
}

TEST_F(RecordingTest, WithoutATidOffsetTheKernelIsAsked) {
  InProcessAgent agent;
  agent.control().tid_offset = tracedata::kNoTidOffset;
  leaf = agent.Call(1, Leaf);
  middle = agent.Call(2, Middle);
  EXPECT_EQ(middle(1), 4 + 7);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1 C1 C2");
}

TEST_F(RecordingTest, ShortCallsAreLeftOut) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  middle = agent.Call(2, Middle);
  agent.control().min_duration = uint64_t{1} << 40;
  EXPECT_EQ(middle(1), 11);
  agent.control().min_duration = 0;
  EXPECT_EQ(leaf(1), 4);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1");
}

// Deeper than the shadow stack: those that are too deep are counted, and return all the same.
TEST_F(RecordingTest, TooDeep) {
  InProcessAgent agent;
  depth = agent.Call(4, Depth);
  constexpr int kDepth = tracedata::kOpenCalls + 500;
  EXPECT_EQ(depth(kDepth), kDepth);
  const auto events = agent.Events(CurrentTid());
  const auto recorded = std::ranges::count(events, EventKind::kCall, &Event::kind) +
                        std::ranges::count(events, EventKind::kExit, &Event::kind);
  uint64_t lost = agent.OwnSlot()->lost[static_cast<uint8_t>(tracedata::LossReason::kTooDeep)];
  for (const Event& event : events) {
    if (event.kind == EventKind::kLost) lost += event.third;
  }
  EXPECT_EQ(recorded + static_cast<int64_t>(lost), kDepth + 1);
  EXPECT_EQ(recorded, tracedata::kOpenCalls - 1);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

// More calls than a chunk holds while others are open: these get their kEntry where it ends.
TEST_F(RecordingTest, ChunkIsExchanged) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  const auto many = agent.Call(
      9, +[](int n) {
        int sum = 0;
        for (int i = 0; i < n; ++i) sum += leaf(i);
        return sum;
      });
  constexpr int kCalls = 20'000;
  many(kCalls);
  const auto events = agent.Events(CurrentTid());
  const auto exits = std::ranges::count(events, EventKind::kExit, &Event::kind);
  EXPECT_EQ(std::ranges::count(events, EventKind::kCall, &Event::kind) + exits, kCalls + 1);
  EXPECT_EQ(std::ranges::count(events, EventKind::kEntry, &Event::kind), exits);
  EXPECT_EQ(std::ranges::count(events, 9u, &Event::function), 2);
  EXPECT_EQ(events.back().kind, EventKind::kExit);
  EXPECT_EQ(events.back().function, 9u);
  EXPECT_GE(agent.pool().filled, 4u);
  uint64_t last = 0;
  for (const Event& event : events) {
    if (event.kind != EventKind::kCall) continue;
    EXPECT_LE(last, event.time);
    last = event.time + event.third;
  }
}

}  // namespace

// Every register, the flags, the vector registers' lower halves and what stands on the stack.
struct Registers {
  uint64_t general[16];  // rax rcx rdx rbx flags rbp rsi rdi r8 … r15
  uint64_t vector[16][2];
  uint64_t stack[8];
};
extern "C" {
Registers agent_test_given;        // when AgentTestCallWithRegisters calls the function
Registers agent_test_at_entry;     // as AgentTestRegisterTarget finds them
Registers agent_test_wanted_back;  // when that returns
Registers agent_test_at_return;    // as AgentTestCallWithRegisters finds them
void* agent_test_function = nullptr;
void AgentTestCallWithRegisters(void* function);
void AgentTestRegisterTarget();
}

namespace {

__asm__(R"(
  .text
  .macro AGENT_TEST_LOAD from
    lea 128(\from), %rax
    movups 0(%rax), %xmm0;   movups 16(%rax), %xmm1;  movups 32(%rax), %xmm2;  movups 48(%rax), %xmm3
    movups 64(%rax), %xmm4;  movups 80(%rax), %xmm5;  movups 96(%rax), %xmm6;  movups 112(%rax), %xmm7
    movups 128(%rax), %xmm8; movups 144(%rax), %xmm9; movups 160(%rax), %xmm10; movups 176(%rax), %xmm11
    movups 192(%rax), %xmm12; movups 208(%rax), %xmm13; movups 224(%rax), %xmm14; movups 240(%rax), %xmm15
    push 32(\from)
    popf
    mov \from, %rax
    mov 8(%rax), %rcx;  mov 16(%rax), %rdx; mov 24(%rax), %rbx; mov 40(%rax), %rbp
    mov 48(%rax), %rsi; mov 56(%rax), %rdi; mov 64(%rax), %r8;  mov 72(%rax), %r9
    mov 80(%rax), %r10; mov 88(%rax), %r11; mov 96(%rax), %r12; mov 104(%rax), %r13
    mov 112(%rax), %r14; mov 120(%rax), %r15
    mov 0(%rax), %rax
  .endm
  .macro AGENT_TEST_STORE to
    push %rax
    pushf
    push %rcx
    lea \to(%rip), %rcx
    mov %rax, 0(%rcx)
    pop %rax
    mov %rax, 8(%rcx)
    pop %rax
    mov %rax, 32(%rcx)
    mov %rdx, 16(%rcx); mov %rbx, 24(%rcx); mov %rbp, 40(%rcx); mov %rsi, 48(%rcx)
    mov %rdi, 56(%rcx); mov %r8, 64(%rcx);  mov %r9, 72(%rcx);  mov %r10, 80(%rcx)
    mov %r11, 88(%rcx); mov %r12, 96(%rcx); mov %r13, 104(%rcx); mov %r14, 112(%rcx)
    mov %r15, 120(%rcx)
    lea 128(%rcx), %rax
    movups %xmm0, 0(%rax);   movups %xmm1, 16(%rax);  movups %xmm2, 32(%rax);  movups %xmm3, 48(%rax)
    movups %xmm4, 64(%rax);  movups %xmm5, 80(%rax);  movups %xmm6, 96(%rax);  movups %xmm7, 112(%rax)
    movups %xmm8, 128(%rax); movups %xmm9, 144(%rax); movups %xmm10, 160(%rax); movups %xmm11, 176(%rax)
    movups %xmm12, 192(%rax); movups %xmm13, 208(%rax); movups %xmm14, 224(%rax); movups %xmm15, 240(%rax)
    pop %rax
  .endm
AgentTestCallWithRegisters:
  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15
  mov %rdi, agent_test_function(%rip)
  lea agent_test_given(%rip), %rdi
  .irp offset, 440, 432, 424, 416, 408, 400, 392, 384
  push \offset(%rdi)
  .endr
  AGENT_TEST_LOAD %rdi
  call *agent_test_function(%rip)
  AGENT_TEST_STORE agent_test_at_return
  lea 64(%rsp), %rsp
  cld
  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx
  ret

AgentTestRegisterTarget:
  nopl 0(%rax,%rax,1)
  AGENT_TEST_STORE agent_test_at_entry
  .irp offset, 0, 8, 16, 24, 32, 40, 48, 56
  mov 8+\offset(%rsp), %rax
  mov %rax, agent_test_at_entry+384+\offset(%rip)
  .endr
  lea agent_test_wanted_back(%rip), %rdi
  AGENT_TEST_LOAD %rdi
  ret
)");

constexpr uint64_t kFlags[] = {0x246, 0xad7, 0x202, 0xa03, 0x293};  // with IF; CF PF AF ZF SF OF

void FillPatterns(Registers& registers, uint64_t seed, uint64_t flags) {
  auto* words = reinterpret_cast<uint64_t*>(&registers);
  for (size_t i = 0; i < sizeof(registers) / 8; ++i) {
    words[i] = (seed + i) * 0x9e3779b97f4a7c15;
  }
  registers.general[4] = flags;
}
void ExpectSame(const Registers& seen, const Registers& expected) {
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(seen.general[i], expected.general[i]) << "register " << i;
    EXPECT_EQ(seen.vector[i][0], expected.vector[i][0]) << "vector " << i;
    EXPECT_EQ(seen.vector[i][1], expected.vector[i][1]) << "vector " << i;
  }
}

// `lower`: words that the stack is lower by than it would be.
void CheckRegisters(void (*stub)(), size_t lower = 0) {
  for (const uint64_t flags : kFlags) {
    FillPatterns(agent_test_given, flags, flags);
    FillPatterns(agent_test_wanted_back, flags + 1000, 0x202 | (~flags & 0x8d5));
    AgentTestCallWithRegisters(reinterpret_cast<void*>(stub));
    ExpectSame(agent_test_at_entry, agent_test_given);
    for (size_t i = 0; i + lower < 8; ++i) {
      EXPECT_EQ(agent_test_at_entry.stack[i + lower], agent_test_given.stack[i]) << "word " << i;
    }
    ExpectSame(agent_test_at_return, agent_test_wanted_back);
  }
}

TEST_F(RecordingTest, NoRegisterChanges) {
  InProcessAgent agent;
  CheckRegisters(AgentTestRegisterTarget);
  const auto stub = agent.Call(1, AgentTestRegisterTarget);
  CheckRegisters(stub);  // the first takes a slot and a chunk
  CheckRegisters(stub);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1 C1 C1 C1 C1 C1 C1 C1 C1 C1");
  agent.control().recording = 0;
  CheckRegisters(stub);
  agent.control().recording = 1;
  CheckRegisters(agent.Stub(StubKind::kInnerCall, 4, AgentTestRegisterTarget), 2);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())),
            "C1 C1 C1 C1 C1 C1 C1 C1 C1 C1 C4 C4 C4 C4 C4");
  CheckRegisters(agent.Stub(StubKind::kBeforeUnwind, 2, AgentTestRegisterTarget));
  CheckRegisters(agent.Stub(StubKind::kAfterCatch, 3, AgentTestRegisterTarget));
}

// The same where functions have actions: of one that has none, one that has, and one that is passed
// through.
TEST_F(RecordingTest, NoRegisterChangesWhereFunctionsAct) {
  InProcessAgent agent;
  const auto stub = agent.Call(1, AgentTestRegisterTarget);
  const auto acting = agent.Call(2, AgentTestRegisterTarget);
  tracedata::ActionSet set;
  set.functions[2].actions.flags = tracedata::kAlways;
  agent.Act(set);
  CheckRegisters(stub);
  CheckRegisters(stub);
  CheckRegisters(acting);
  set.root_state = tracedata::kOutside;
  agent.Act(set);
  CheckRegisters(stub);
  CheckRegisters(acting);
  set.root_state = tracedata::kHolding;
  agent.Act(set);
  CheckRegisters(stub);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())),
            "C1 C1 C1 C1 C1 C1 C1 C1 C1 C1 C2 C2 C2 C2 C2");
}

// As V8's code, which looks below its own stack pointer for what its calls have pushed. Tells where
// that is, and what its call pushes.
extern "C" int AgentTestCallAndLook(int (*function)(int), int x);
extern "C" void* agent_test_return_address;
extern "C" void** agent_test_place;
void* agent_test_return_address = nullptr;
void** agent_test_place = nullptr;
__asm__(R"(
  .text
AgentTestCallAndLook:
  push %rbx
  lea -8(%rsp), %rbx
  mov %rbx, agent_test_place(%rip)
  lea 1f(%rip), %rbx
  mov %rbx, agent_test_return_address(%rip)
  mov %rdi, %rax
  mov %esi, %edi
  call *%rax
1:
  pop %rbx
  ret
)");
OUT_OF_LINE int LookAtCaller(int x) {
  const int n = leaf(x);
  return *agent_test_place == agent_test_return_address ? n : -1;
}

TEST_F(RecordingTest, AnInnerCallLeavesTheReturnAddressWhereItIs) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  const auto ordinary = agent.Call(2, LookAtCaller);
  EXPECT_EQ(AgentTestCallAndLook(ordinary, 5), -1);
  const auto inner = agent.Stub(StubKind::kInnerCall, 3, LookAtCaller);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(AgentTestCallAndLook(inner, 5), 16);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1 C2 C1 C3 C1 C3 C1 C3");
  agent.control().recording = 0;
  EXPECT_EQ(AgentTestCallAndLook(inner, 5), 16);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

// A function that calls mcount behind its prologue: the site lies inside its frame.
extern "C" int AgentTestFramed(int x);
extern "C" int AgentTestFramedSite(int x);
extern "C" int (*agent_test_framed_callee)(int);
int (*agent_test_framed_callee)(int) = Leaf;
__asm__(R"(
  .text
AgentTestFramed:
  push %rbp
  mov %rsp, %rbp
  sub $32, %rsp
AgentTestFramedSite:
  nopl 0(%rax,%rax,1)
  call *agent_test_framed_callee(%rip)
  add $9, %eax
  leave
  ret
)");

TEST_F(RecordingTest, SiteInsideAFrame) {
  InProcessAgent agent;
  agent_test_framed_callee = agent.Call(1, Leaf);
  agent.Patch(StubKind::kFramedCall, 2, AgentTestFramedSite);
  const auto outer = agent.Call(3, +[](int x) { return AgentTestFramed(x) + 1; });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(outer(5), 26);
  EXPECT_EQ(InProcessAgent::Text(agent.Events(CurrentTid())), "C1 C2 C3 C1 C2 C3 C1 C2 C3");
  agent.control().recording = 0;
  EXPECT_EQ(outer(5), 26);
  EXPECT_EQ(agent.OpenCalls(), 0u);
  agent_test_framed_callee = Leaf;
}

OUT_OF_LINE double SumOf(int count, ...) {
  va_list list;
  va_start(list, count);
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += va_arg(list, double);
  va_end(list);
  return sum;
}

TEST_F(RecordingTest, VariableArguments) {
  InProcessAgent agent;
  const auto sum = agent.Call(1, SumOf);
  EXPECT_EQ(sum(12, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.), 78.);
}

TEST_F(RecordingTest, EachThreadHasItsOwn) {
  InProcessAgent agent;
  fibonacci = agent.Call(7, Fibonacci);
  constexpr int kThreads = 20;
  std::vector<uint32_t> tids(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        tids[i] = CurrentTid();
        EXPECT_EQ(fibonacci(12), 144);
      });
    }
  }
  for (const uint32_t tid : tids) EXPECT_EQ(agent.Events(tid).size(), 465u);
}

uint64_t KernelTime() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000) + static_cast<uint64_t>(now.tv_nsec);
}

TEST_F(RecordingTest, TimesMayBeTheKernels) {
  InProcessAgent agent;
  agent.control().kernel_clock = 1;
  agent.control().short_tid_offset = tracedata::kNoTidOffset;
  const uint64_t before = KernelTime();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(agent.Call(7, Leaf)(i), (i * 3) + 1);
  const uint64_t after = KernelTime();
  const std::vector<Event> events = agent.Events(CurrentTid());
  EXPECT_EQ(InProcessAgent::Text(events), "C7 C7 C7");
  for (const Event& event : events) {
    EXPECT_GE(event.time, before);
    EXPECT_LE(event.time + event.third, after);
  }
}

}  // namespace
}  // namespace stackreel::agent
#endif
