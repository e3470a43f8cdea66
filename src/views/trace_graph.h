// The merged call graph of a trace: each way to a function once, with its calls and times.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "base/io.h"
#include "profile/profile.h"

namespace stackreel::views {

// `profile` is analyze::MakeTraceProfile's. Largest first; at most `max_depth` levels; a node with
// less than `min_percent` of the whole is left out.
struct TraceGraphOptions {
  uint32_t max_depth = UINT32_MAX;
  double min_percent = 0;
};
Status TraceGraphText(const profile::Profile& profile, const TraceGraphOptions& options,
                      ByteSink& out);
// {"schema":"stackreel.trace_graph","version":1,"nodes":[…]}: a node names its parent by number,
// which comes before it; -1: none. Times in nanoseconds.
Status TraceGraphJson(const profile::Profile& profile, const TraceGraphOptions& options,
                      ByteSink& out);

}  // namespace stackreel::views
