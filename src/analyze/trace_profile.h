// A trace as a profile: for flame graphs, folded stacks and the merged call graph.
#pragma once

#include <array>
#include <cstdint>

#include "analyze/trace_calls.h"
#include "base/error.h"
#include "profile/profile.h"

namespace stackreel::analyze {

// One sample for each stack of each thread: its weight is the nanoseconds spent in its innermost
// function itself, its count the calls of it. The event is named "time".
Result<profile::Profile> MakeTraceProfile(TraceCalls& calls);

// Calls that are known not to have been recorded.
struct CallLosses {
  tracedata::LostCalls calls = {};
  uint64_t places = 0;  // where it is not known how many
};
// Reads all calls for it.
Result<CallLosses> CountLosses(tracedata::TraceSource& source);

// What was lost or is missing, as text for people; empty: nothing. A line each.
std::string LossText(const tracedata::TraceSource& source, const Counters& counters);

}  // namespace stackreel::analyze
