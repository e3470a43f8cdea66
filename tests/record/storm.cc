// A target that forks, executes and makes threads all the time: storm SECONDS; or that works under
// some 50 KB of stack: storm deep; or that asks for the time: storm clock.
// Each process and thread works for a moment in a function of its own.
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

__attribute__((noinline)) void Work(std::chrono::microseconds time) {
  volatile unsigned sum = 0;
  for (const auto end = Clock::now() + time; Clock::now() < end;) sum = sum + 1;
}
__attribute__((noinline)) void WorkInThread() { Work(std::chrono::microseconds(1500)); }
__attribute__((noinline)) void WorkInFork() { Work(std::chrono::microseconds(1500)); }
__attribute__((noinline)) void WorkAfterExec() { Work(std::chrono::microseconds(1500)); }

volatile char sink;
__attribute__((noinline)) void WorkBelow(int frames) {
  volatile char room[1000];
  room[0] = static_cast<char>(frames);
  if (frames == 0) {
    Work(std::chrono::seconds(1));
  } else {
    WorkBelow(frames - 1);
  }
  sink = room[0];
}

// Nearly all of its time is spent in the vDSO. So many values are alive across the call that %rbp
// holds one of them and not a frame.
__attribute__((noinline)) long AskForTheTime(long count, long step, long first, long other) {
  timespec now = {};
  long sum = first;
  for (long i = 0; i < count; i += step) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    sum += now.tv_nsec ^ other;
    other += first;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "child") == 0) {
    WorkAfterExec();
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "deep") == 0) {
    WorkBelow(50);
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "clock") == 0) {
    const auto end = Clock::now() + std::chrono::seconds(2);
    while (Clock::now() < end) sink = static_cast<char>(AskForTheTime(100'000, 1, 3, 5));
    return 0;
  }
  const auto end = Clock::now() + std::chrono::milliseconds(
                                      static_cast<int>(1000 * (argc > 1 ? atof(argv[1]) : 1)));
  while (Clock::now() < end) {
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; ++i) threads.emplace_back(WorkInThread);
    for (int i = 0; i < 4; ++i) {
      if (fork() != 0) continue;
      if (i % 2 == 0) {
        WorkInFork();
        _exit(0);
      }
      execl("/proc/self/exe", "storm", "child", nullptr);
      _exit(127);
    }
    for (std::thread& thread : threads) thread.join();
    while (waitpid(-1, nullptr, 0) > 0) {
    }
  }
  return 7;
}
