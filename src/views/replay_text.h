// The calls of a trace as text, in order of time.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analyze/timed_sample.h"
#include "analyze/trace_calls.h"
#include "base/error.h"
#include "base/io.h"

namespace stackreel::views {

enum class ReplayField : uint8_t { kTime, kElapsed, kDuration, kPid, kTid, kComm };

// "duration,tid" → fields; "none": none. kUsage names the word that is none.
Result<std::vector<ReplayField>> ParseReplayFields(std::string_view text);

struct ReplayOptions {
  std::vector<ReplayField> fields = {ReplayField::kDuration, ReplayField::kTid};
  bool module_names = false;  // "printf@libc.so.6"
  bool merge_leaves = true;   // a call that calls nothing is one line
  bool values = true;         // arguments and return values
  bool comments = true;       // the name of what ends, and what was lost
  // In order of time: each a comment between the calls. Must outlive the call.
  std::span<const analyze::TimedSample> samples;
};
// A line for each entry and end: "  1.535 ms [ 1234] |   } /* name */".
Status ReplayText(analyze::TraceCalls& calls, const ReplayOptions& options, ByteSink& out);

}  // namespace stackreel::views
