// A tracer that is killed at whatever moment leaves the process that it holds as it was.
#ifdef __x86_64__
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>

#include "os/stopped_process.h"

namespace stackreel::os {
namespace {

template <typename... Arguments>
long Ptrace(int request, pid_t tid, Arguments... arguments) {
  return ptrace(static_cast<__ptrace_request>(request), tid, arguments...);
}

// Whether `tid` is about to make a ptrace(2) call.
bool EntersPtrace(pid_t tid) {
  __ptrace_syscall_info info = {};
  return Ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) > 0 &&
         info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_ptrace;
}

// Runs it in a process of its own, which is killed at its nth ptrace(2) call. False if it ended
// before that.
bool KilledAt(int nth, const std::function<void()>& body) {
  const pid_t tracer = fork();
  if (tracer == 0) {
    ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    raise(SIGSTOP);
    body();
    _exit(0);
  }
  int status = 0;
  waitpid(tracer, &status, 0);
  Ptrace(PTRACE_SETOPTIONS, tracer, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE);
  Ptrace(PTRACE_SYSCALL, tracer, 0, 0);
  int calls = 0;
  while (true) {
    const pid_t tid = waitpid(-1, &status, __WALL);
    if (tid < 0) return false;
    if (!WIFSTOPPED(status)) {
      if (tid == tracer) return false;
      continue;
    }
    const bool at_system_call = WSTOPSIG(status) == (SIGTRAP | 0x80);
    if (at_system_call && EntersPtrace(tid) && ++calls == nth) break;
    const bool passes_on = !at_system_call && (status >> 16) == 0 && WSTOPSIG(status) != SIGSTOP;
    Ptrace(PTRACE_SYSCALL, tid, 0, passes_on ? WSTOPSIG(status) : 0);
  }
  kill(tracer, SIGKILL);
  // Its threads have to be taken in before it is.
  pid_t changed = 0;
  do {
    changed = waitpid(-1, &status, __WALL);
  } while (changed >= 0 && (changed != tracer || WIFSTOPPED(status)));
  return true;
}

// What a program has in its registers while it runs, vector registers too.
struct Told {
  std::atomic<uint64_t> rounds = 0;
  std::atomic<bool> ends = false;
};

// Whether the upper half of a ymm register lasts through a long loop: it is no part of what the
// kernel brings back when it does not know a frame's vector state.
__attribute__((target("avx"))) bool KeepsUpperHalf() {
  const std::array<uint64_t, 4> before = {1, 2, 3, 4};
  std::array<uint64_t, 4> after = {};
  uint64_t rounds = 20'000;
  asm volatile(
      "vmovdqu %[before], %%ymm7\n"
      "1: dec %[rounds]\n"
      "jnz 1b\n"
      "vmovdqu %%ymm7, %[after]\n"
      "vzeroupper"
      : [rounds] "+r"(rounds), [after] "=m"(after)
      : [before] "m"(before)
      : "xmm7", "cc");
  return after == before;
}

[[noreturn]] void Compute(Told& told) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // where the test fails
  const bool has_avx = __builtin_cpu_supports("avx");
  while (!told.ends) {
    if (has_avx && !KeepsUpperHalf()) _exit(3);
    uint64_t whole = 0;
    double broken = 0, quarter = 0.25, other = 0;
    for (uint64_t i = 0; i < 5000; ++i) {
      whole += i ^ (whole << 1);
      broken += quarter;
      other += broken * 0.5;
      asm volatile("" : "+r"(whole), "+x"(broken), "+x"(quarter), "+x"(other));
    }
    static const uint64_t first = whole;
    if (whole != first || broken != 1250 || other != 1562812.5) _exit(1);
    told.rounds.fetch_add(1);
  }
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  _exit(sigisemptyset(&blocked) == 1 ? 0 : 2);
}

TEST(KilledTracer, LeavesAProcessItHadMakeSystemCallsAsItWas) {
  void* const shared =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* told = new (shared) Told();
  const pid_t target = fork();
  if (target == 0) Compute(*told);
  const auto trace = [target] {
    auto stopped = StoppedProcess::Stop(static_cast<uint32_t>(target), std::chrono::seconds(10));
    for (int i = 0; stopped && i < 2; ++i) (void)(*stopped)->SystemCall(SYS_getppid, {});
    if (stopped) (void)(*stopped)->Release();
  };
  int nth = 1;
  for (constexpr int kMost = 200; nth < kMost && KilledAt(nth, trace); ++nth) {
    // It goes on, and has gone through what it held in its registers.
    const uint64_t before = told->rounds;
    for (int i = 0; i < 10'000 && told->rounds < before + 2; ++i) usleep(1000);
    ASSERT_GE(told->rounds, before + 2) << "killed at call " << nth;
  }
  EXPECT_GT(nth, 15);  // it was killed in the midst of system calls, too
  told->ends = true;
  int status = 0;
  ASSERT_EQ(waitpid(target, &status, 0), target);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  munmap(shared, sizeof(Told));
}

}  // namespace
}  // namespace stackreel::os
#endif
