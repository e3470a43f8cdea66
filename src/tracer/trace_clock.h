// The conversion of ticks (rdtsc) to time.
#pragma once

#include <cstdint>

#include "tracedata/trace_facts.h"

namespace stackreel::tracer {

// What agents count time by. One for all of this process, chosen before the first trace begins.
enum class TickSource : uint8_t {
  kCounter,  // rdtsc
  kKernel,   // clock_gettime(2), CLOCK_MONOTONIC, in nanoseconds: a system call each
};
void SetTickSource(TickSource source);
[[nodiscard]] bool UsesKernelClock();
// Now, as agents count it.
uint64_t NowTicks();

// Measures from when it is made to when it is asked, and for some milliseconds at least.
class ClockMeasurement {
 public:
  ClockMeasurement();
  [[nodiscard]] tracedata::TraceClock Finish() const;

 private:
  uint64_t ticks_ = 0, nanoseconds_ = 0;
};
// The same conversion, its rate measured from when `since` was until now.
tracedata::TraceClock RefineClock(const tracedata::TraceClock& since);

// This machine and the command line of a process.
tracedata::TraceHost DescribeHost(uint32_t pid);

}  // namespace stackreel::tracer
