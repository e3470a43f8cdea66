// C++ exceptions through traced frames: caught at every depth, rethrown, out of destructors' reach.
#include <execinfo.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define CHECK(condition)                                                           \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::_Exit(1);                                                               \
    }                                                                              \
  } while (false)

namespace {
std::atomic<unsigned long long> calls;
std::chrono::steady_clock::time_point deadline;
bool Over() { return std::chrono::steady_clock::now() >= deadline; }
}  // namespace

struct Counted {
  explicit Counted(int* count) : count_(count) { ++*count_; }
  ~Counted() { --*count_; }
  int* count_;
};

NOINLINE int thrower(int depth, int* live) {
  const Counted counted(live);
  if (depth == 0) throw std::runtime_error("bottom");
  return thrower(depth - 1, live) + 1;
}
NOINLINE int rethrower(int depth, int* live) {
  const Counted counted(live);
  try {
    return thrower(depth, live) + 1;
  } catch (const std::runtime_error&) {
    if (depth % 2 == 1) throw;
    return -depth;
  }
}
NOINLINE int plain(int x) {
  asm volatile("");
  return x * 7 + 4;
}
// What backtrace() shows must be the frames there are: it is called two frames below.
NOINLINE int walk(int depth) {
  if (depth > 0) {
    const int below = walk(depth - 1);
    asm volatile("");
    return below + 1;
  }
  void* frames[64];
  return backtrace(frames, 64);
}

static void Work() {
  unsigned long long count = 0;
  const int base = walk(0);
  while (!Over()) {
    for (int depth = 0; depth < 20; ++depth) {
      int live = 0;
      try {
        CHECK(rethrower(depth, &live) == -depth);
        CHECK(depth % 2 == 0);
      } catch (const std::runtime_error& error) {
        CHECK(depth % 2 == 1 && std::string(error.what()) == "bottom");
      }
      CHECK(live == 0);
      CHECK(plain(depth) == depth * 7 + 4);
      ++count;
    }
    // walk(5) adds 5 to what it gives, and has 5 frames more.
    CHECK(walk(5) == base + 10);
  }
  calls += count;
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 8;
  deadline = std::chrono::steady_clock::now() +
             std::chrono::microseconds(static_cast<long>(seconds * 1e6));
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) running.emplace_back(Work);
  for (std::thread& thread : running) thread.join();
  std::printf("calls plain %llu\n", calls.load());
}
