// The conversion of ticks (rdtsc) to time.
#pragma once

#include "tracedata/trace_facts.h"

namespace stackreel::tracer {

// Measures for some milliseconds.
tracedata::TraceClock MeasureClock();
// The same conversion, its rate measured from when `since` was until now.
tracedata::TraceClock RefineClock(const tracedata::TraceClock& since);

// This machine and the command line of a process.
tracedata::TraceHost DescribeHost(uint32_t pid);

}  // namespace stackreel::tracer
