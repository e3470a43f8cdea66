#include "record/tick_clock.h"

#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace stackreel::record {

namespace {

// A reading of both takes less, and so does what the kernel's clock is adjusted by in a second.
constexpr uint64_t kDoubtNanoseconds = 2000;
// Shorter than this, the rate is not known well enough.
constexpr uint64_t kLeastNanoseconds = 1'000'000;

uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return 0;
#endif
}

}  // namespace

TickClock::TickClock(std::optional<int32_t> clockid) : known_(clockid == CLOCK_MONOTONIC) {
  if (known_) first_ = last_ = Now();
}

TickClock::Moment TickClock::Now() {
  constexpr int kReadings = 5;
  Moment best;
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < kReadings; ++i) {
    const uint64_t before = Ticks();
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    const uint64_t after = Ticks();
    if (after - before >= least) continue;
    least = after - before;
    constexpr uint64_t kSecond = 1'000'000'000;
    best = {before + (least / 2),
            (static_cast<uint64_t>(now.tv_sec) * kSecond) + static_cast<uint64_t>(now.tv_nsec)};
  }
  return best;
}

void TickClock::Measure() {
  if (known_) last_ = Now();
}

uint64_t TickClock::TicksAt(uint64_t time, bool kernel_clock) const {
  if (!known_ || time < kDoubtNanoseconds) return 0;
  const uint64_t at = time - kDoubtNanoseconds;
  if (kernel_clock) return at;
  if (last_.nanoseconds < first_.nanoseconds + kLeastNanoseconds || last_.ticks <= first_.ticks) {
    return 0;
  }
  const double rate = static_cast<double>(last_.ticks - first_.ticks) /
                      static_cast<double>(last_.nanoseconds - first_.nanoseconds);
  const auto since = static_cast<double>(static_cast<int64_t>(at - last_.nanoseconds));
  return last_.ticks + static_cast<uint64_t>(static_cast<int64_t>(since * rate));
}

}  // namespace stackreel::record
