// Filters and triggers as they are typed, and what they mean: which calls of the functions that are
// patched are recorded.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tracedata/action_table.h"
#include "tracedata/filter_option.h"
#include "tracer/function_pattern.h"

namespace stackreel::tracer {

// What is done at the functions of one pattern.
struct FunctionFilter {
  FunctionPattern pattern;
  size_t option = 0;                   // which of CallFilters::options it is
  tracedata::FunctionActions actions;  // but for a duration:
  std::optional<uint64_t> least_nanoseconds;
};

struct CallFilters {
  std::vector<tracedata::FilterOption> options;  // as they were given
  std::vector<FunctionFilter> functions;
  uint32_t levels = tracedata::kLevels;  // -D
  uint64_t least_nanoseconds = 0;        // -t
  std::optional<bool> tracing;           // --tracing

  // kUsage: a pattern with a fault, an unknown trigger (those there are being named), a number that
  // is none. The last of several -D, -t and --tracing counts.
  static Result<CallFilters> Parse(std::span<const tracedata::FilterOption> options);

  // The state in which a thread's outermost call is made.
  [[nodiscard]] uint32_t RootState() const;
  // Whether a function switches tracing on or off.
  [[nodiscard]] bool SwitchTracing() const;
};

}  // namespace stackreel::tracer
