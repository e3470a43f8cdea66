// A trace as a profile: for flame graphs, folded stacks and the merged call graph.
#pragma once

#include <cstdint>
#include <string>

#include "analyze/trace_calls.h"
#include "base/error.h"
#include "profile/profile.h"
#include "tracedata/call_losses.h"

namespace stackreel::analyze {

// One sample for each stack of each thread: its weight is the nanoseconds spent in its innermost
// function itself, its count the calls of it. The event is named "time".
Result<profile::Profile> MakeTraceProfile(TraceCalls& calls);

// Reads all calls for it.
Result<tracedata::CallLosses> CountLosses(tracedata::TraceSource& source);

// What was lost or is missing, as text for people; empty: nothing. A line each. `calls` are known
// not to have been recorded, of `places` it is not known how many.
std::string LossText(const tracedata::TraceSource& source, uint64_t calls, uint64_t places);

}  // namespace stackreel::analyze
