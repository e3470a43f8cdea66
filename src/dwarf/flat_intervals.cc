#include "dwarf/flat_intervals.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace stackreel::dwarf {

void FlatIntervals::Append(uint64_t start, uint32_t value) {
  if (!starts_.empty() && starts_.back() == start) {
    values_.back() = value;
  } else if (values_.empty() ? value != kNone : values_.back() != value) {
    starts_.push_back(start);
    values_.push_back(value);
  }
}

// Sweeps over the starts. `open` has the intervals that began, the topmost first; those that ended
// are dropped when they come up.
FlatIntervals::FlatIntervals(std::vector<Interval> intervals) {
  std::stable_sort(intervals.begin(), intervals.end(),
                   [](const Interval& a, const Interval& b) { return a.lo < b.lo; });
  const auto below = [&](size_t a, size_t b) {
    if (intervals[a].depth != intervals[b].depth) return intervals[a].depth < intervals[b].depth;
    return a < b;
  };
  std::priority_queue<size_t, std::vector<size_t>, decltype(below)> open(below);
  // Emits the pieces from `at` to `limit`.
  const auto advance = [&](uint64_t at, uint64_t limit) {
    while (!open.empty() && at < limit) {
      const Interval& top = intervals[open.top()];
      if (top.hi <= at) {
        open.pop();
        continue;
      }
      Append(at, top.value);
      at = std::min(top.hi, limit);
    }
    if (open.empty() && at < limit) Append(at, kNone);
  };
  for (size_t i = 0; i < intervals.size();) {
    const uint64_t start = intervals[i].lo;
    for (; i < intervals.size() && intervals[i].lo == start; ++i) {
      if (intervals[i].lo < intervals[i].hi) open.push(i);
    }
    advance(start, i < intervals.size() ? intervals[i].lo : UINT64_MAX);
  }
  starts_.shrink_to_fit();
  values_.shrink_to_fit();
}

uint32_t FlatIntervals::Find(uint64_t address) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), address);
  if (after == starts_.begin()) return kNone;
  return values_[static_cast<size_t>(after - starts_.begin()) - 1];
}

}  // namespace stackreel::dwarf
