// The conversion of ticks (rdtsc) to time.
#pragma once

#include <cstdint>

#include "tracedata/trace_facts.h"

namespace stackreel::tracer {

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
