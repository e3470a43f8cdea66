#include "record/tick_clock.h"

#include <gtest/gtest.h>
#include <time.h>

namespace stackreel::record {
namespace {

uint64_t Monotonic() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

TEST(TickClock, TellsOfTheMonotonicClockOnly) {
  for (const std::optional<int32_t> other : {std::optional<int32_t>(), {CLOCK_REALTIME}}) {
    TickClock clock(other);
    EXPECT_EQ(clock.TicksAt(Monotonic(), /*kernel_clock=*/false), 0u);
  }
}

TEST(TickClock, TicksOfTheKernelsClockAreNanoseconds) {
  const TickClock clock(CLOCK_MONOTONIC);
  const uint64_t now = Monotonic();
  EXPECT_LT(clock.TicksAt(now, /*kernel_clock=*/true), now);
  EXPECT_GT(clock.TicksAt(now, /*kernel_clock=*/true), now - 10'000);
}

#if defined(__x86_64__)
// What it gives is surely over at that time, and nearly then.
TEST(TickClock, TicksOfTheCounterAreThoseOfTheTime) {
  TickClock clock(CLOCK_MONOTONIC);
  const timespec pause = {.tv_sec = 0, .tv_nsec = 20'000'000};
  nanosleep(&pause, nullptr);
  clock.Measure();
  const uint64_t before = __builtin_ia32_rdtsc();
  const uint64_t time = Monotonic();
  const uint64_t ticks = clock.TicksAt(time, /*kernel_clock=*/false);
  const uint64_t after = __builtin_ia32_rdtsc();
  EXPECT_LT(ticks, after);
  constexpr uint64_t kTenMicroseconds = 50'000;  // at 5 GHz
  EXPECT_GT(ticks + kTenMicroseconds, before);
}
#endif

}  // namespace
}  // namespace stackreel::record
