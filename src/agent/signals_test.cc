// Signals that arrive while the agent works, handlers that jump out, and the handler of SIGTRAP.
#ifdef __x86_64__
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"
#include "patch/trap.h"

namespace stackreel::agent {
namespace {

using tracedata::EventKind;
using tracedata::LossReason;

OUT_OF_LINE int InHandler(int x) {
  __asm__ volatile("");
  return x + 5;
}
Called<int(int)> in_handler(InHandler);
OUT_OF_LINE int CallsInHandler(int x) { return in_handler(x) + 1; }
Called<int(int)> calls_in_handler(CallsInHandler);

std::atomic<uint64_t> handled = 0;
std::atomic<uint64_t> handled_wrong = 0;
void Handler(int) {
  if (calls_in_handler(1) != 7) ++handled_wrong;
  ++handled;
}

void Install(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

// Sends `signal` to this thread again and again while `work` runs.
template <typename Work>
void UnderSignals(int signal, Work work) {
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event._sigev_un._tid = static_cast<pid_t>(CurrentTid());
  timer_t timer = {};
  ASSERT_EQ(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
  const itimerspec often = {{0, 30'000}, {0, 30'000}};
  timer_settime(timer, 0, &often, nullptr);
  work();
  timer_delete(timer);
}

uint64_t Ends(InProcessAgent& agent, uint32_t function) {
  uint64_t count = 0;
  for (const Event& event : agent.Events(CurrentTid())) {
    const bool ends = event.kind == EventKind::kCall || event.kind == EventKind::kExit;
    if (ends && event.function == function) ++count;
  }
  return count;
}
uint64_t Lost(InProcessAgent& agent, LossReason reason) {
  const auto i = static_cast<uint8_t>(reason);
  uint64_t lost = agent.OwnSlot()->lost[i];
  for (const Event& event : agent.Events(CurrentTid())) {
    if (event.kind == EventKind::kLost && event.function == i) lost += event.third;
  }
  return lost;
}

void Storm(int flags) {
  InProcessAgent agent(1024);
  leaf = agent.Call(1, Leaf);
  in_handler = agent.Call(2, InHandler);
  calls_in_handler = agent.Call(3, CallsInHandler);
  handled = 0;
  handled_wrong = 0;
  Install(SIGUSR1, Handler, flags);
  constexpr int kCalls = 300'000;
  uint64_t wrong = 0;
  UnderSignals(SIGUSR1, [&] {
    for (int i = 0; i < kCalls; ++i) wrong += leaf(i) != i * 3 + 1;
  });
  Install(SIGUSR1, SIG_IGN, 0);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(handled_wrong, 0u);
  EXPECT_GT(handled, 100u);
  EXPECT_EQ(Ends(agent, 1), kCalls);
  EXPECT_EQ(Ends(agent, 2) + Ends(agent, 3) + Lost(agent, LossReason::kInterrupted), 2 * handled);
  EXPECT_GT(Lost(agent, LossReason::kInterrupted), 0u);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

TEST(SignalsTest, Storm) { Storm(SA_RESTART); }
TEST(SignalsTest, NestedStorm) { Storm(SA_RESTART | SA_NODEFER); }

// The handlers' stack lies above this thread's, or below: both orders of places.
void StormOnAnotherStack(bool above) {
  constexpr size_t kSize = 256 << 10;
  auto* const memory = static_cast<uint8_t*>(
      mmap(nullptr, 3 * kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory + (above ? 0 : kSize), 2 * kSize);
  uint8_t* const signal_stack = memory + (above ? 2 * kSize : 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(
                &thread, &attributes,
                [](void* at) -> void* {
                  stack_t stack = {};
                  stack.ss_sp = at;
                  stack.ss_size = kSize;
                  sigaltstack(&stack, nullptr);
                  Storm(SA_RESTART | SA_ONSTACK);
                  stack.ss_flags = SS_DISABLE;
                  sigaltstack(&stack, nullptr);
                  return nullptr;
                },
                signal_stack),
            0);
  pthread_join(thread, nullptr);
  munmap(memory, 3 * kSize);
}
TEST(SignalsTest, StormOnAStackBelow) { StormOnAnotherStack(false); }
TEST(SignalsTest, StormOnAStackAbove) { StormOnAnotherStack(true); }

sigjmp_buf out;
volatile sig_atomic_t may_jump = 0;
void JumpOut(int) {
  in_handler(1);
  if (!may_jump) return;
  may_jump = 0;  // or the last one might jump out of what comes behind the loop
  siglongjmp(out, 1);
}

// Handlers that never return leave the agent busy, and calls half recorded: later ones heal that.
TEST(SignalsTest, JumpingOutOfHandlers) {
  InProcessAgent agent(1024);
  leaf = agent.Call(1, Leaf);
  in_handler = agent.Call(2, InHandler);
  Install(SIGUSR1, JumpOut, SA_RESTART);
  static volatile uint64_t wrong;
  static volatile int jumps;
  wrong = 0;
  jumps = 0;
  UnderSignals(SIGUSR1, [&] {
    while (jumps < 3'000) {
      if (sigsetjmp(out, 1) != 0) {
        jumps = jumps + 1;
        continue;
      }
      may_jump = 1;
      for (int i = 0; i < 1000; ++i) wrong = wrong + (leaf(i) != i * 3 + 1);
      may_jump = 0;
    }
  });
  Install(SIGUSR1, SIG_IGN, 0);
  EXPECT_EQ(wrong, 0u);
  const uint64_t before = Ends(agent, 1);
  EXPECT_EQ(leaf(1), 4);
  EXPECT_EQ(leaf(1), 4);
  EXPECT_EQ(Ends(agent, 1), before + 2);
  EXPECT_EQ(agent.OpenCalls(), 0u);
}

// A trap of ours.
extern "C" int AgentTestTrapped(int x);
__asm__(R"(
  .text
AgentTestTrapped:
  int3
  lea 100(%rdi), %eax
  ret
)");
OUT_OF_LINE int InsteadOfTrapped(int x) {
  __asm__ volatile("");
  return x + 1000;
}

struct Table {
  tracedata::TrapTable header;
  patch::TrapEntry entries[2];
};

class TrapTest : public testing::Test {
 protected:
  struct KernelAction {
    uint64_t handler, flags, restorer, mask;
  };
  TrapTest() {
    const KernelAction action = {agent_.code() + agent_.routines().trap,
                                 SA_SIGINFO | SA_NODEFER | SA_ONSTACK | 0x04000000,
                                 agent_.code() + agent_.routines().trap_return, 0};
    EXPECT_EQ(syscall(SYS_rt_sigaction, SIGTRAP, &action, &before_, 8), 0);
  }
  ~TrapTest() override { syscall(SYS_rt_sigaction, SIGTRAP, &before_, nullptr, 8); }
  void Publish(const Table& table) {
    agent_.control().trap_table = InProcessAgent::Address(&table);
  }
  static Avma At(int (*function)(int)) {
    return Avma(InProcessAgent::Address(reinterpret_cast<void*>(function)));
  }
  static int Status(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }

  InProcessAgent agent_;
  KernelAction before_ = {};
};

TEST_F(TrapTest, GoesOnWhereTheTableSays) {
  const Table table = {{1}, {{At(AgentTestTrapped), At(InsteadOfTrapped), Avma(0)}, {}}};
  Publish(table);
  EXPECT_EQ(AgentTestTrapped(1), 1001);
  // As a call: returns behind the int3.
  const Table called = {
      {1}, {{At(AgentTestTrapped), At(InsteadOfTrapped), At(AgentTestTrapped) + 1}, {}}};
  Publish(called);
  EXPECT_EQ(AgentTestTrapped(1), 101);
}

int program_traps = 0;
uint64_t program_mask = 0;
void ProgramTrap(int, siginfo_t*, void*) {
  ++program_traps;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &program_mask, 8);
}

TEST_F(TrapTest, OthersAreTheProgramsOwn) {
  agent_.control().program_trap_handler =
      InProcessAgent::Address(reinterpret_cast<void*>(ProgramTrap));
  agent_.control().program_trap_flags = SA_SIGINFO;
  agent_.control().program_trap_mask = uint64_t{1} << (SIGUSR2 - 1);
  program_traps = 0;
  EXPECT_EQ(AgentTestTrapped(1), 101);
  EXPECT_EQ(program_traps, 1);
  EXPECT_EQ(program_mask & uint64_t{1} << (SIGUSR2 - 1), uint64_t{1} << (SIGUSR2 - 1));
  raise(SIGTRAP);
  EXPECT_EQ(program_traps, 2);
  uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, 8);
  EXPECT_EQ(mask & uint64_t{1} << (SIGUSR2 - 1), 0u);
  // SA_RESETHAND holds as well.
  agent_.control().program_trap_flags = SA_SIGINFO | SA_RESETHAND;
  EXPECT_EQ(AgentTestTrapped(1), 101);
  EXPECT_EQ(agent_.control().program_trap_handler, 0u);
}

TEST_F(TrapTest, WithoutAHandlerTheProgramDies) {
  const pid_t child = fork();
  if (child == 0) {
    AgentTestTrapped(1);
    _exit(1);
  }
  EXPECT_EQ(Status(child) & 0x7f, SIGTRAP);
}

TEST_F(TrapTest, IgnoredTraps) {
  agent_.control().program_trap_handler = 1;  // SIG_IGN
  raise(SIGTRAP);
  const pid_t child = fork();
  if (child == 0) {
    AgentTestTrapped(1);
    _exit(1);
  }
  EXPECT_EQ(Status(child) & 0x7f, SIGTRAP);
}

// The int3 has gone from memory when the handler looks: the instruction is run again.
TEST_F(TrapTest, RetriesWhenTheTrapIsGone) {
  std::atomic<bool> stop = false;
  agent_.Patch(StubKind::kCall, 1, Leaf);
  auto* const code = static_cast<uint8_t*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const uint8_t bytes[] = {0x90, 0x8d, 0x47, 0x07, 0xc3};  // nop; lea eax, [rdi+7]; ret
  std::memcpy(code, bytes, sizeof(bytes));
  const Table with = {
      {1},
      {{Avma(InProcessAgent::Address(code)), Avma(InProcessAgent::Address(code) + 1), Avma(0)},
       {}}};
  const Table without = {{0}, {}};
  std::jthread toggler([&] {
    while (!stop) {
      Publish(with);
      std::atomic_ref<uint8_t>(*code).store(0xcc);
      for (int i = 0; i < 200; ++i) __asm__ volatile("");
      std::atomic_ref<uint8_t>(*code).store(0x90);
      Publish(without);
    }
  });
  const auto function = reinterpret_cast<int (*)(int)>(code);
  for (int i = 0; i < 100'000; ++i) ASSERT_EQ(function(i), i + 7);
  stop = true;
  toggler.join();
  munmap(code, 4096);
}

}  // namespace
}  // namespace stackreel::agent
#endif
