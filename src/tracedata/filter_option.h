// A filter or trigger as it is typed: what commands send to a trace, and what a trace says was in
// force.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

namespace stackreel::tracedata {

struct FilterOption {
  // As in files and messages.
  enum class Kind : uint8_t {
    kBegin = 1,   // -F: recording begins at these functions
    kEnd = 2,     // -N: and ends at these
    kCaller = 3,  // -C: only the calls that lead to these
    kTrigger = 4,
    kDepth = 5,  // -D
    kTime = 6,   // -t
    kTracing = 7,
  };
  Kind kind = Kind::kBegin;
  std::string text = {};  // the option's value
  friend bool operator==(const FilterOption&, const FilterOption&) = default;
};
inline constexpr uint8_t kFilterKinds = 7;
inline constexpr bool IsFilterKind(uint8_t kind) { return kind >= 1 && kind <= kFilterKinds; }

// Whether its text begins with a pattern of functions.
inline constexpr bool IsOfFunctions(FilterOption::Kind kind) {
  return kind <= FilterOption::Kind::kTrigger;
}

inline bool IsOfTracing(const FilterOption& option) {
  return option.kind == FilterOption::Kind::kTracing;
}
// Whether there is nothing among them but --tracing. Such a change keeps the filters in force.
inline bool OnlySwitchTracing(std::span<const FilterOption> options) {
  return !options.empty() && std::ranges::all_of(options, IsOfTracing);
}

// "-F parse"
inline std::string ToText(const FilterOption& option) {
  constexpr const char* kNames[] = {"-F ", "-N ", "-C ", "-T ", "-D ", "-t ", "--tracing "};
  return kNames[static_cast<uint8_t>(option.kind) - 1] + option.text;
}

}  // namespace stackreel::tracedata
