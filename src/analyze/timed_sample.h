// A sample as it is shown among the calls of a trace.
#pragma once

#include <cstdint>
#include <string>

namespace stackreel::analyze {

struct TimedSample {
  uint64_t time = 0;  // nanoseconds, as the trace's
  uint32_t pid = 0, tid = 0;
  std::string function;  // the innermost
};

}  // namespace stackreel::analyze
