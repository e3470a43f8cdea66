// Programs that have limited their system calls: the agent makes none that would end them, and goes
// on recording. Each test runs in a forked child under a real filter.
#ifdef __x86_64__
#include <cxxabi.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unwind.h>

#include <cstddef>

#include "agent/called_function.h"
#include "agent/in_process_agent.h"

namespace stackreel::agent {
namespace {

using tracedata::OwnCalls;

jmp_buf place_to_return;
OUT_OF_LINE int Jumps(int x) {
  if (x > 0) longjmp(place_to_return, x);  // NOLINT(modernize-avoid-setjmp-longjmp)
  return x;
}
Called<int(int)> jumps(Jumps);
OUT_OF_LINE int Outer(int x) { return jumps(x) + leaf(x); }
Called<int(int)> outer(Outer);

OUT_OF_LINE int Throws(int x) {
  if (x > 0) throw x;
  return x;
}
Called<int(int)> throws(Throws);
OUT_OF_LINE int Catches(int x) {
  try {
    return throws(x);
  } catch (int thrown) {
    return thrown + 1;
  }
}
Called<int(int)> catches(Catches);

// Under seccomp's strict mode read, write, exit and sigreturn are left; under this filter exit, and
// what OwnCalls::kFew leaves to the agent.
void Limit(OwnCalls left) {
  if (left == OwnCalls::kNone) {
    CheckInTest(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0, "strict seccomp");
    return;
  }
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 3, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_gettid, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(steps), steps};
  CheckInTest(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
  CheckInTest(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0, "filter");
}

class LimitedTest : public testing::TestWithParam<OwnCalls> {
 protected:
  ~LimitedTest() override { Called<int(int)>::ResetAll(); }

  // Runs `body` in a child, which ends with what it returns, while its chunks are emptied. The exit
  // code, or minus the signal that ended it.
  template <typename Body>
  int Run(InProcessAgent& agent, Body body) {
    const pid_t child = fork();
    if (child == 0) {
      if (GetParam() == OwnCalls::kNone) {
        agent.control().last_ticks = __builtin_ia32_rdtsc();
        agent.control().short_tid_offset = tracedata::kNoTidOffset;
      }
      agent.control().own_calls = GetParam();
      Limit(GetParam());
      syscall(SYS_exit, body());
    }
    int status = 0;
    constexpr int kPatience = 20'000;  // milliseconds
    for (int i = 0; waitpid(child, &status, WNOHANG) == 0; ++i) {
      emptied_ += agent.FreeFull();
      if (i == kPatience) kill(child, SIGKILL);
      const timespec pause = {0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
  }

  uint32_t emptied_ = 0;  // chunks
};

TEST_P(LimitedTest, AwaitsFreeChunks) {
  InProcessAgent agent(2);
  leaf = agent.Call(1, Leaf);
  EXPECT_EQ(leaf(0), 1);  // the slot is its
  EXPECT_EQ(Run(agent,
                [] {
                  int wrong = 0;
                  for (int i = 0; i < 100'000; ++i) wrong += leaf(i) == i * 3 + 1 ? 0 : 1;
                  return wrong == 0 ? 7 : 8;
                }),
            7);
  EXPECT_GT(emptied_, 10u);
  EXPECT_EQ(agent.pool().unwoken, 1u);
  uint64_t lost = 0;
  for (const auto& row : agent.pool().losses) {
    for (const auto& calls : row.calls) lost += calls;
  }
  EXPECT_EQ(lost, 0u);
}

TEST_P(LimitedTest, TakesItsSlotThen) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  EXPECT_EQ(Run(agent, [] { return leaf(2); }), 7);
  // The child has its own slots: what it wrote is in the pool.
  EXPECT_EQ(agent.chunk(0).used, 12u);
}

TEST_P(LimitedTest, TimesMayBeTheKernels) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  agent.control().kernel_clock = 1;
  agent.control().short_tid_offset = tracedata::kNoTidOffset;
  EXPECT_EQ(leaf(0), 1);
  EXPECT_EQ(Run(agent, [] { return leaf(2); }), 7);
  EXPECT_EQ(agent.chunk(1).used, 12u);
}

TEST_P(LimitedTest, WithoutATidOffset) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  agent.control().tid_offset = agent.control().short_tid_offset = tracedata::kNoTidOffset;
  EXPECT_EQ(leaf(0), 1);
  EXPECT_EQ(Run(agent, [] { return leaf(2); }), 7);
  // Who calls is not to be known without any: the call is counted.
  EXPECT_EQ(agent.chunk(1).used, GetParam() == OwnCalls::kNone ? 0u : 12u);
}

TEST_P(LimitedTest, LeavesCallsByLongjmp) {
  InProcessAgent agent;
  leaf = agent.Call(1, Leaf);
  jumps = agent.Call(2, Jumps);
  outer = agent.Call(3, Outer);
  EXPECT_EQ(outer(0), 1);
  EXPECT_EQ(Run(agent,
                [] {
                  volatile int jumped = 0;
                  for (int i = 0; i < 5000; ++i) {
                    if (setjmp(place_to_return) == 0) {  // NOLINT(modernize-avoid-setjmp-longjmp)
                      outer(1);
                    } else {
                      jumped = jumped + 1;
                      if (leaf(2) != 7) return 8;
                    }
                  }
                  return jumped == 5000 ? 7 : 9;
                }),
            7);
}

TEST_P(LimitedTest, LeavesCallsByExceptions) {
  InProcessAgent agent;
  agent.Patch(StubKind::kBeforeUnwind, 0, _Unwind_RaiseException);
  agent.Patch(StubKind::kAfterCatch, 0, __cxa_begin_catch);
  throws = agent.Call(1, Throws);
  catches = agent.Call(2, Catches);
  EXPECT_EQ(catches(1), 2);  // the exception's memory is had again
  EXPECT_EQ(Run(agent,
                [] {
                  for (int i = 1; i <= 1000; ++i) {
                    if (catches(i) != i + 1) return 8;
                  }
                  return 7;
                }),
            7);
}

INSTANTIATE_TEST_SUITE_P(Agent, LimitedTest, testing::Values(OwnCalls::kFew, OwnCalls::kNone),
                         [](const auto& test) {
                           return test.param == OwnCalls::kFew ? "Few" : "None";
                         });

}  // namespace
}  // namespace stackreel::agent
#endif
