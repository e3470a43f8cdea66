// The events and facts of a trace, for people who look closely and for other programs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "analyze/timed_sample.h"
#include "analyze/trace_calls.h"
#include "analyze/trace_profile.h"
#include "base/error.h"
#include "base/io.h"

namespace stackreel::views {

// The recording of samples beside a trace.
struct TraceSamples {
  std::string file;
  uint64_t samples = 0;
  uint64_t lost = 0;  // records
  std::string event;
  std::string clock;  // "CLOCK_MONOTONIC"; "" if it is not told
};

// Facts, then all events in order of time: "13097.046535343 [ 1234/  1235] entry main".
Status TraceDumpText(analyze::TraceCalls& calls, ByteSink& out);
// A JSON object a line; the first names schema and version.
Status TraceDumpJson(analyze::TraceCalls& calls, ByteSink& out);
// Chrome's trace event format, as chrome://tracing and Perfetto read it: an event of a duration for
// each call ("X"), in order of ends, then one for each of `samples` ("P"); times in microseconds.
Status TraceDumpChrome(analyze::TraceCalls& calls, std::span<const analyze::TimedSample> samples,
                       ByteSink& out);
// What the trace is: format, program, machine, modules, threads, clock, patches, losses.
std::string TraceInfoText(analyze::TraceCalls& calls, const tracedata::CallLosses& losses,
                          const std::optional<TraceSamples>& samples = std::nullopt);
std::string TraceInfoJson(analyze::TraceCalls& calls, const tracedata::CallLosses& losses,
                          const std::optional<TraceSamples>& samples = std::nullopt);

}  // namespace stackreel::views
