// Stacks that are hard to unwind: signal handlers (on the stack they interrupt, or on their own),
// exceptions, calls through the PLT, libraries loaded and unloaded, realigned and moving frames,
// callbacks out of libc, short threads.
// usage: traps SECONDS [alternate]
// g++ -O2 -g -fomit-frame-pointer traps.cc -o traps -pthread
#include <alloca.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/time.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

namespace {

volatile double sink;
volatile sig_atomic_t handled;

[[gnu::noinline]] double Work(int n) {
  double sum = 0;
  for (int i = 1; i < n; ++i) sum += std::sqrt(i) * std::sin(i);
  return sum;
}

int Compare(const void* a, const void* b) {
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

[[gnu::noinline]] void Handle(int depth) {
  volatile char local[64];
  local[0] = static_cast<char>(depth);
  if (depth > 0) {
    Handle(depth - 1);
    sink = sink + local[0];
    return;
  }
  sink = sink + Work(3000);
  int values[200];
  for (int i = 0; i < 200; ++i) values[i] = (i * 7919) % 1000;
  qsort(values, 200, sizeof values[0], Compare);
}

void OnAlarm(int) {
  handled = handled + 1;
  Handle(5);
}

[[gnu::noinline]] double Throw(int depth) {
  volatile char local[100];
  local[3] = static_cast<char>(depth);
  if (depth == 0) throw std::runtime_error("thrown");
  return Throw(depth - 1) + local[3];
}

// Its frame is aligned to more than the ABI asks for: the CFA lies at an expression.
[[gnu::noinline]] double Realigned(int depth) {
  alignas(64) volatile double local[8];
  for (int i = 0; i < 8; ++i) local[i] = i * depth;
  return (depth > 0 ? Realigned(depth - 1) : Work(200)) + local[3];
}

[[gnu::noinline]] double Moving(int size) {
  char* local = static_cast<char*>(alloca(static_cast<size_t>(size)));
  std::memset(local, size, static_cast<size_t>(size));
  return local[size / 2] + Work(100);
}

void LoadAndUnload() {
  if (void* zlib = dlopen("libz.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    using Crc = unsigned long (*)(unsigned long, const unsigned char*, unsigned);
    static const unsigned char bytes[2048] = {};
    if (const auto crc = reinterpret_cast<Crc>(dlsym(zlib, "crc32"))) {
      sink = sink + static_cast<double>(crc(0, bytes, sizeof bytes));
    }
    dlclose(zlib);
  }
  if (void* xml = dlopen("libxml2.so.2", RTLD_LAZY | RTLD_LOCAL)) dlclose(xml);
}

void Round() {
  for (int i = 0; i < 20; ++i) {
    try {
      Throw(12);
    } catch (const std::exception& thrown) {
      sink = sink + static_cast<double>(std::strlen(thrown.what()));
    }
    sink = sink + Realigned(6) + Moving(1000 + i * 7);
  }
  LoadAndUnload();
  std::thread([] { sink = sink + Work(20000); }).join();
  for (int i = 0; i < 2000; ++i) {
    sink = sink + std::exp(i * 0.001) + static_cast<double>(std::to_string(i).size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 4;
  const bool alternate = argc > 2 && std::string_view(argv[2]) == "alternate";
  if (alternate) {
    static char stack[65536];
    stack_t own = {};
    own.ss_sp = stack;
    own.ss_size = sizeof stack;
    sigaltstack(&own, nullptr);
  }
  struct sigaction action = {};
  action.sa_handler = OnAlarm;
  action.sa_flags = SA_RESTART | (alternate ? SA_ONSTACK : 0);
  sigaction(SIGALRM, &action, nullptr);
  const itimerval interval = {{0, 2000}, {0, 2000}};
  setitimer(ITIMER_REAL, &interval, nullptr);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) Round();
  std::printf("%d signals\n", static_cast<int>(handled));
}
