// How threads wait, for the tracer and for each other.
#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

constexpr uint64_t kOneWait = 100'000'000;  // nanoseconds
// Of a thread that runs while it waits; how long each takes on current CPUs, about.
constexpr uint32_t kPausesOfWait = 1 << 12;
constexpr uint64_t kNanosecondsOfPause = 40;
constexpr uint32_t kPausesOfYield = 1 << 6;
// About what CPUs count. It need not be exact.
constexpr uint64_t kTicksPerNanosecond = 3;

void Pause(uint32_t times) {
  for (uint32_t i = 0; i < times; ++i) __builtin_ia32_pause();
}

}  // namespace

uint64_t KernelTicks() {
  auto& last = agent_control.last_ticks;
  if (MayCallNothing()) return last.load(std::memory_order_relaxed);
  const uint64_t now = Nanoseconds();
  last.store(now, std::memory_order_relaxed);
  return now;
}

void WakeTracer() {
  PoolHeader& pool = Pool();
  if (!MayCall()) {
    if (pool.unwoken.load(std::memory_order_relaxed) == 0) pool.unwoken.store(1);
  } else if (pool.tracer_waits.load() != 0) {
    SystemCall(__NR_futex, AddressOf(&pool.filled), kFutexWake, 1);
  }
}

void Await(std::atomic<uint32_t>& word, uint32_t seen) {
  if (MayCall()) {
    const __kernel_timespec timeout = {0, static_cast<long long>(kOneWait)};
    SystemCall(__NR_futex, AddressOf(&word), kFutexWait, seen, AddressOf(&timeout));
    return;
  }
  for (uint32_t i = 0; i < kPausesOfWait; ++i) {
    if (word.load(std::memory_order_acquire) != seen) return;
    Pause(1);
  }
}

void Yield() {
  if (MayCall()) {
    SystemCall(__NR_sched_yield);
  } else {
    Pause(kPausesOfYield);
  }
}

bool WaitingTime::IsOver(uint64_t nanoseconds) {
  // No clock is left: by how often it was asked, between two waits.
  if (MayCallNothing()) return ++asked_ * kPausesOfWait * kNanosecondsOfPause > nanoseconds;
  if (since_ticks_ == 0) {
    if (MayCall()) since_ = Nanoseconds();
    since_ticks_ = __builtin_ia32_rdtsc();
    return false;
  }
  if (MayCall()) return Nanoseconds() - since_ > nanoseconds;
  return __builtin_ia32_rdtsc() - since_ticks_ > nanoseconds * kTicksPerNanosecond;
}

}  // namespace stackreel::agent
