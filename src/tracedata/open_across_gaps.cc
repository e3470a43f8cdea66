#include "tracedata/open_across_gaps.h"

#include <algorithm>

namespace stackreel::tracedata {

namespace {
constexpr size_t kMaxSearched = 4096;  // calls that an end is looked for in: more than an agent has
constexpr size_t kMaxAtOneTick = 4096;  // calls that began at once
}  // namespace

void OpenAcrossGaps::Note(const OrderedEvent& event) {
  if (event.kind() == EventKind::kLost) return;
  if (event.kind() == EventKind::kEntry) {
    open_.push_back({event.ticks, event.function()});
    return;
  }
  const size_t stop = open_.size() > kMaxSearched ? open_.size() - kMaxSearched : 0;
  for (size_t i = open_.size(); i > stop; --i) {
    if (open_[i - 1].function != event.function()) continue;
    open_.resize(i - 1);
    return;
  }
}

size_t OpenAcrossGaps::Find(const OrderedEvent& entry, size_t from) const {
  const size_t stop = std::min(open_.size(), from + kMaxAtOneTick);
  for (size_t i = from; i < stop && open_[i].start == entry.ticks; ++i) {
    if (open_[i].function == entry.function()) return i;
  }
  return open_.size();
}

std::vector<uint32_t> OpenAcrossGaps::Resume(std::vector<OrderedEvent>& events, size_t first,
                                             uint64_t gap) {
  size_t at = first;
  size_t kept = first;
  size_t next = 0;  // in open_, where the next entry's call may be
  size_t still_open = 0;
  for (; at < events.size() && events[at].ticks <= gap; ++at) {
    const OrderedEvent& event = events[at];
    const EventKind kind = event.kind();
    if (kind != EventKind::kEntry && kind != EventKind::kLost) break;
    if (kind == EventKind::kEntry) {
      while (next < open_.size() && open_[next].start < event.ticks) ++next;
      if (const size_t known = Find(event, next); known != open_.size()) {
        next = still_open = known + 1;
        continue;
      }
    }
    events[kept++] = event;
  }
  using Difference = std::vector<OrderedEvent>::difference_type;
  events.erase(events.begin() + static_cast<Difference>(kept),
               events.begin() + static_cast<Difference>(at));
  std::vector<uint32_t> ended;
  for (; open_.size() > still_open; open_.pop_back()) ended.push_back(open_.back().function);
  return ended;
}

}  // namespace stackreel::tracedata
