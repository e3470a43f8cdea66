#include "os/stopped_process.h"

#include <errno.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#endif

#include <array>
#include <atomic>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#if defined(__x86_64__)

namespace stackreel::os {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr auto kPatience = milliseconds(60'000);  // more than any busy machine takes

double NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (1e3 * static_cast<double>(now.tv_sec)) + (1e-6 * static_cast<double>(now.tv_nsec));
}
void SleepMs(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }

// What the program under test and the test both see.
struct Shared {
  std::atomic<bool> ready, leave;
  std::array<std::atomic<uint64_t>, 16> counts;
  std::array<std::atomic<int>, 16> errors;  // errno + 1 of what each thread did, 0 while it does it
  std::array<std::atomic<double>, 16> took_ms;
  std::atomic<uint64_t> signals;
  std::atomic<uint64_t> address;
};

// A program: a function run in a process of its own.
class Program {
 public:
  explicit Program(const std::function<int(Shared&)>& run) {
    void* memory =
        mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = new (memory) Shared{};
    pid_ = fork();
    if (pid_ == 0) _exit(run(*shared_));
    while (!shared_->ready) SleepMs(1);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    munmap(shared_, sizeof(Shared));
  }
  Shared& shared() { return *shared_; }
  [[nodiscard]] uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  // Its exit code, or 128 and the signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  Shared* shared_ = nullptr;
};

std::unique_ptr<StoppedProcess> StopOrDie(uint32_t pid) {
  auto stopped = StoppedProcess::Stop(pid, kPatience);
  EXPECT_TRUE(stopped) << stopped.error().message;
  if (!stopped) std::abort();
  return std::move(*stopped);
}

int CountInThreads(Shared& shared, int count) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&shared, i] {
      while (!shared.leave) ++shared.counts[i];
    });
  }
  shared.ready = true;
  return 0;
}

uint64_t SumOfCounts(const Shared& shared) {
  uint64_t sum = 0;
  for (const auto& count : shared.counts) sum += count;
  return sum;
}

TEST(StoppedProcess, StopsEveryThreadAndLetsItGoOn) {
  Program program([](Shared& shared) { return CountInThreads(shared, 8); });
  {
    const auto stopped = StopOrDie(program.pid());
    EXPECT_EQ(stopped->threads().size(), 9U);
    const uint64_t before = SumOfCounts(program.shared());
    SleepMs(20);
    EXPECT_EQ(SumOfCounts(program.shared()), before);
  }
  const uint64_t before = SumOfCounts(program.shared());
  for (int i = 0; i < 10'000 && SumOfCounts(program.shared()) == before; ++i) SleepMs(1);
  EXPECT_NE(SumOfCounts(program.shared()), before);
  program.shared().leave = true;
  EXPECT_EQ(program.Wait(), 0);
}

// Every way to wait for 300 ms, or for a byte, that the kernel ends differently at a stop.
constexpr int kWaitMs = 300;
constexpr timespec kWait = {.tv_sec = 0, .tv_nsec = kWaitMs * 1'000'000L};

using Wait = int (*)();
constexpr auto kWaits = std::to_array<std::pair<const char*, Wait>>({
    {"nanosleep", [] { return nanosleep(&kWait, nullptr); }},
    {"clock_nanosleep", [] { return clock_nanosleep(CLOCK_REALTIME, 0, &kWait, nullptr); }},
    {"epoll_wait",
     [] {
       epoll_event event = {};
       return epoll_wait(epoll_create1(0), &event, 1, kWaitMs);
     }},
    {"sigtimedwait",
     [] {
       sigset_t set;
       sigemptyset(&set);
       sigaddset(&set, SIGUSR2);
       pthread_sigmask(SIG_BLOCK, &set, nullptr);
       return sigtimedwait(&set, nullptr, &kWait) < 0 && errno == EAGAIN ? 0 : -1;
     }},
    {"semtimedop",
     [] {
       const int sem = semget(IPC_PRIVATE, 1, 0600);
       sembuf take = {.sem_num = 0, .sem_op = -1, .sem_flg = 0};
       const int result = semtimedop(sem, &take, 1, &kWait);
       const int error = errno;
       semctl(sem, 0, IPC_RMID);
       errno = error;
       return result < 0 && error == EAGAIN ? 0 : -1;
     }},
    {"recv",
     [] {
       std::array<int, 2> ends = {};
       socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
       const timeval wait = {.tv_sec = 0, .tv_usec = kWaitMs * 1000};
       setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
       char byte = 0;
       return recv(ends[0], &byte, 1, 0) < 0 && errno == EAGAIN ? 0 : -1;
     }},
    {"futex",
     [] {
       int word = 0;
       return syscall(SYS_futex, &word, 0, 0, &kWait) < 0 && errno == ETIMEDOUT ? 0 : -1;
     }},
    {"select",
     [] {
       timeval wait = {.tv_sec = 0, .tv_usec = kWaitMs * 1000};
       return select(0, nullptr, nullptr, nullptr, &wait);
     }},
});

TEST(StoppedProcess, IsNotSeenByThreadsThatWait) {
  Program program([](Shared& shared) {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < kWaits.size(); ++i) {
      threads.emplace_back([&shared, i] {
        const double begin = NowMs();
        const int result = kWaits[i].second();
        const int error = result == 0 ? 0 : errno;
        shared.took_ms[i] = NowMs() - begin;
        shared.errors[i] = error + 1;
      });
    }
    shared.ready = true;
    return 0;
  });
  for (int i = 0; i < 10; ++i) {
    const auto stopped = StoppedProcess::Stop(program.pid(), kPatience);
    if (!stopped) break;  // on a busy machine they may have waited by now
    SleepMs(5);
  }
  EXPECT_EQ(program.Wait(), 0);
  for (size_t i = 0; i < kWaits.size(); ++i) {
    EXPECT_EQ(program.shared().errors[i] - 1, 0) << kWaits[i].first;
    EXPECT_GE(program.shared().took_ms[i], kWaitMs) << kWaits[i].first;
  }
}

// A signal that comes at any moment of a stop ends the wait that it is for: the program blocks it
// but while it waits, and the next is sent only when it has woken.
TEST(StoppedProcess, LosesNoWakeUp) {
  constexpr uint64_t kSignals = 400;
  Program program([](Shared& shared) {
    sigset_t blocked, none;
    sigemptyset(&none);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    sigaction(SIGUSR1, &action, nullptr);
    const int poll = epoll_create1(0);
    shared.ready = true;
    while (shared.signals < kSignals) {
      epoll_event event = {};
      if (epoll_pwait(poll, &event, 1, 5000, &none) != -1 || errno != EINTR) return 1;
      ++shared.signals;
    }
    return 0;
  });
  std::atomic<bool> failed = false;
  std::jthread sender([&program, &failed] {
    for (uint64_t i = 0; i < kSignals && !failed; ++i) {
      kill(static_cast<pid_t>(program.pid()), SIGUSR1);
      while (program.shared().signals <= i && !failed) std::this_thread::yield();
    }
  });
  while (program.shared().signals < kSignals) {
    const auto stopped = StoppedProcess::Stop(program.pid(), kPatience);
    if (stopped) continue;
    // It may have ended by itself meanwhile.
    EXPECT_EQ(program.shared().signals, kSignals) << stopped.error().ToString();
    break;
  }
  failed = program.shared().signals < kSignals;
  sender.join();  // before there is no such process any more, and kill(2) takes -1 for all
  EXPECT_EQ(program.Wait(), 0);
}

std::atomic<uint64_t>* signals_seen = nullptr;

// Threads that send themselves signals all the time stop most often where they take one.
TEST(StoppedProcess, LosesNoSignal) {
  Program program([](Shared& shared) {
    signals_seen = &shared.signals;
    struct sigaction action = {};
    action.sa_handler = [](int) { ++*signals_seen; };
    sigaction(SIGUSR1, &action, nullptr);
    shared.ready = true;
    uint64_t raised = 0;
    while (!shared.leave) {
      raise(SIGUSR1);
      if (shared.signals != ++raised) return 1;
    }
    return 0;
  });
  for (int i = 0; i < 1000; ++i) {
    if (!StoppedProcess::Stop(program.pid(), kPatience)) break;
  }
  program.shared().leave = true;
  EXPECT_EQ(program.Wait(), 0);
}

// SIGCHLD is ignored unless it is asked for; traced processes are woken by it all the same.
TEST(StoppedProcess, DoesNotLetIgnoredSignalsThrough) {
  Program program([](Shared& shared) {
    std::vector<pid_t> children;
    for (int i = 0; i < 20; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        SleepMs(20 + (10 * i));
        _exit(0);
      }
      children.push_back(child);
    }
    const int poll = epoll_create1(0);
    shared.ready = true;
    epoll_event event = {};
    const int got = epoll_wait(poll, &event, 1, 300);
    const int error = errno;
    for (const pid_t child : children) waitpid(child, nullptr, 0);
    return got == 0 ? 0 : error;
  });
  for (int i = 0; i < 25; ++i) {
    const auto stopped = StoppedProcess::Stop(program.pid(), kPatience);
    if (!stopped) break;  // its exit code tells why
    SleepMs(8);
  }
  EXPECT_EQ(program.Wait(), 0);
}

TEST(StoppedProcess, CatchesThreadsThatComeAndGo) {
  Program program([](Shared& shared) {
    shared.ready = true;
    while (!shared.leave) {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 8; ++i) {
        threads.emplace_back([&shared, i] {
          for (int n = 0; n < 100'000; ++n) ++shared.counts[i];
        });
      }
    }
    return 0;
  });
  for (int i = 0; i < 100; ++i) {
    const auto stopped = StopOrDie(program.pid());
    const uint64_t before = SumOfCounts(program.shared());
    SleepMs(2);
    EXPECT_EQ(SumOfCounts(program.shared()), before);
  }
  program.shared().leave = true;
  EXPECT_EQ(program.Wait(), 0);
}

TEST(StoppedProcess, HoldsChildrenThatShareMemory) {
  Program program([](Shared& shared) {
    shared.ready = true;
    while (!shared.leave) {
      const pid_t child = vfork();  // NOLINT: what is tested
      if (child == 0) {
        for (int i = 0; i < 1000; ++i) ++shared.counts[0];
        _exit(7);
      }
      int status = 0;
      if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7) return 1;
    }
    return 0;
  });
  bool held_in_vfork = false;
  for (int i = 0; i < 300 || (!held_in_vfork && i < 30'000); ++i) {
    const auto stopped = StopOrDie(program.pid());
    for (const auto& thread : stopped->threads()) held_in_vfork |= thread.awaits_vfork;
    const uint64_t before = SumOfCounts(program.shared());
    if (i % 30 == 0) SleepMs(2);
    EXPECT_EQ(SumOfCounts(program.shared()), before);
  }
  program.shared().leave = true;
  EXPECT_EQ(program.Wait(), 0);
  EXPECT_TRUE(held_in_vfork) << "the case did not arise";
}

TEST(StoppedProcess, MakesSystemCallsInASleepingThread) {
  Program program([](Shared& shared) {
    constexpr timespec kSecond = {.tv_sec = 1, .tv_nsec = 0};
    shared.ready = true;
    const double begin = NowMs();
    if (nanosleep(&kSecond, nullptr) != 0) return 1;
    return NowMs() - begin >= 1000 ? 0 : 2;
  });
  SleepMs(20);
  {
    const auto stopped = StopOrDie(program.pid());
    const auto pid = stopped->SystemCall(SYS_getpid, {});
    ASSERT_TRUE(pid) << pid.error().message;
    EXPECT_EQ(*pid, program.pid());
    const auto closed = stopped->SystemCall(SYS_close, {9999});
    ASSERT_TRUE(closed);
    EXPECT_EQ(*closed, -EBADF);
    const auto mapped = stopped->SystemCall(
        SYS_mmap, {0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, uint64_t(-1), 0});
    ASSERT_TRUE(mapped);
    const std::array<uint8_t, 3> word = {1, 2, 3};
    std::array<uint8_t, 3> back = {};
    EXPECT_TRUE(stopped->WriteMemory(Avma(uint64_t(*mapped)), word)) << "though it is read-only";
    EXPECT_TRUE(stopped->ReadMemory(Avma(uint64_t(*mapped)), back));
    EXPECT_EQ(back, word);
  }
  EXPECT_EQ(program.Wait(), 0);
}

[[gnu::noinline]] void Spin(std::atomic<bool>& leave) {
  while (!leave) {
  }
}
std::atomic<bool>* other_ways_flag = nullptr;
[[gnu::noinline]] void OtherWay() {
  *other_ways_flag = true;
  _exit(42);
}

TEST(StoppedProcess, MovesAThread) {
  Program program([](Shared& shared) {
    other_ways_flag = &shared.leave;
    shared.address = reinterpret_cast<uint64_t>(&OtherWay);
    shared.ready = true;
    Spin(shared.leave);
    return 1;
  });
  {
    const auto stopped = StopOrDie(program.pid());
    ASSERT_EQ(stopped->threads().size(), 1U);
    ASSERT_TRUE(stopped->SetInstructionPointer(0, Avma(program.shared().address)));
  }
  EXPECT_EQ(program.Wait(), 42);
}

std::string StateLine(uint32_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("State:")) return line;
  }
  return "";
}

TEST(StoppedProcess, LeavesAStoppedProcessStopped) {
  Program program([](Shared& shared) { return CountInThreads(shared, 2); });
  kill(static_cast<pid_t>(program.pid()), SIGSTOP);
  for (int i = 0; i < 10'000 && !StateLine(program.pid()).contains('T'); ++i) SleepMs(1);
  {
    const auto stopped = StopOrDie(program.pid());
    const auto pid = stopped->SystemCall(SYS_getpid, {});
    ASSERT_TRUE(pid);
    EXPECT_EQ(*pid, program.pid());
  }
  const uint64_t before = SumOfCounts(program.shared());
  // Its threads say so when they have run, on their way back to where they were stopped.
  for (int i = 0; i < 10'000 && !StateLine(program.pid()).contains('T'); ++i) SleepMs(1);
  SleepMs(20);
  EXPECT_EQ(SumOfCounts(program.shared()), before);
  EXPECT_THAT(StateLine(program.pid()), HasSubstr("T (stopped)"));
  kill(static_cast<pid_t>(program.pid()), SIGCONT);
  program.shared().leave = true;
  EXPECT_EQ(program.Wait(), 0);
}

#if __has_include(<sys/rseq.h>)
// Waits for `leave` in a restartable sequence, in which it says that it is ready. False if that
// goes on when it is set; it has to begin anew.
bool BeginsAnew(const std::atomic<bool>& leave, std::atomic<bool>& ready) {
  auto* const area = reinterpret_cast<struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) +
                                                    __rseq_offset);
  int anew = 0;
  asm volatile(
      ".pushsection .data.rel, \"aw\"\n"
      ".balign 32\n"
      "1: .long 0, 0\n"
      ".quad 2f, 3f - 2f, 4f\n"
      ".popsection\n"
      "5: lea 1b(%%rip), %%rax\n"
      "mov %%rax, %[sequence]\n"
      "2: cmpb $0, %[leave]\n"
      "jne 7f\n"
      "movb $1, %[ready]\n"
      "8: cmpb $0, %[leave]\n"
      "je 8b\n"
      "3: jmp 6f\n"
      ".long %c[signature]\n"
      "4: jmp 5b\n"
      "7: movl $1, %[anew]\n"
      "6: movq $0, %[sequence]\n"
      : [sequence] "+m"(area->rseq_cs), [anew] "+r"(anew), [ready] "+m"(ready)
      : [leave] "m"(leave), [signature] "i"(RSEQ_SIG)
      : "rax", "cc", "memory");
  return anew != 0;
}

TEST(StoppedProcess, LetsARestartableSequenceBeginAnew) {
  if (__rseq_size == 0) GTEST_SKIP() << "the C library has asked the kernel for none";
  Program program([](Shared& shared) { return BeginsAnew(shared.leave, shared.ready) ? 0 : 1; });
  {
    const auto stopped = StopOrDie(program.pid());
    ASSERT_TRUE(stopped->SystemCall(SYS_getpid, {}));
    program.shared().leave = true;
  }
  EXPECT_EQ(program.Wait(), 0);
}
#endif

TEST(StoppedProcess, TellsWhyNot) {
  const auto nobody = StoppedProcess::Stop(4'000'000, kPatience);
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().kind, ErrorKind::kNotFound);

  Program program([](Shared& shared) { return CountInThreads(shared, 1); });
  const auto first = StopOrDie(program.pid());
  const auto second = StoppedProcess::Stop(program.pid(), kPatience);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kPermission);
  EXPECT_THAT(second.error().message, HasSubstr("is traced already"));
}

TEST(StoppedProcess, GoesOnIfItsTracerIsKilled) {
  Program program([](Shared& shared) { return CountInThreads(shared, 4); });
  const uint32_t pid = program.pid();
  Program tracer([pid](Shared& shared) {
    const auto stopped = StopOrDie(pid);
    shared.ready = true;
    pause();
    return 0;
  });
  const uint64_t before = SumOfCounts(program.shared());
  kill(static_cast<pid_t>(tracer.pid()), SIGKILL);
  EXPECT_EQ(tracer.Wait(), 128 + SIGKILL);
  for (int i = 0; i < 10'000 && SumOfCounts(program.shared()) == before; ++i) SleepMs(1);
  EXPECT_NE(SumOfCounts(program.shared()), before);
  program.shared().leave = true;
  EXPECT_EQ(program.Wait(), 0);
}

TEST(StoppedProcess, SurvivesTheEndOfTheProcess) {
  Program program([](Shared& shared) { return CountInThreads(shared, 4); });
  const auto stopped = StopOrDie(program.pid());
  kill(static_cast<pid_t>(program.pid()), SIGKILL);
  SleepMs(20);
  EXPECT_FALSE(stopped->SystemCall(SYS_getpid, {}));
  EXPECT_TRUE(stopped->Release());
  EXPECT_EQ(program.Wait(), 128 + SIGKILL);
}

}  // namespace
}  // namespace stackreel::os

#endif  // __x86_64__
