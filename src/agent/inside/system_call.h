// System calls without a C library. Results are the kernel's: negative is an error.
#pragma once

#include <asm/unistd.h>
#include <linux/time_types.h>

#include <cstddef>
#include <cstdint>

namespace stackreel::agent {

inline int64_t SystemCall(int64_t number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0,
                          uint64_t d = 0, uint64_t e = 0, uint64_t f = 0) {
  int64_t result;
  register uint64_t r10 __asm__("r10") = d;
  register uint64_t r8 __asm__("r8") = e;
  register uint64_t r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
template <typename T>
uint64_t AddressOf(T* p) {
  return reinterpret_cast<uint64_t>(p);
}

inline constexpr int64_t kNoSuchProcess = -3;  // ESRCH
inline constexpr int64_t kBadAddress = -14;    // EFAULT
inline constexpr int64_t kTimedOut = -110;     // ETIMEDOUT
inline constexpr uint64_t kFutexWait = 0;      // shared: the pool is mapped by several processes
inline constexpr uint64_t kFutexWake = 1;
inline constexpr uint64_t kBlockSignals = 0;    // SIG_BLOCK
inline constexpr uint64_t kUnblockSignals = 1;  // SIG_UNBLOCK
inline constexpr uint64_t kSetSignals = 2;      // SIG_SETMASK
inline constexpr uint64_t kSignalSetSize = 8;

// Of CLOCK_MONOTONIC.
inline uint64_t Nanoseconds() {
  __kernel_timespec time = {};
  SystemCall(__NR_clock_gettime, 1, AddressOf(&time));
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}
inline uint32_t Gettid() { return static_cast<uint32_t>(SystemCall(__NR_gettid)); }
inline uint32_t Getpid() { return static_cast<uint32_t>(SystemCall(__NR_getpid)); }

}  // namespace stackreel::agent
