#include "tracedata/event_order.h"

#include <algorithm>

namespace stackreel::tracedata {

namespace {

// How many calls inside each other an entry may be put below. More than any agent has open.
constexpr size_t kMaxLifted = 4096;

uint32_t WordAt(ByteView words, size_t at) {
  return LoadUnaligned<uint32_t>(words.data() + at, Endian::kLittle);
}

uint32_t WithKind(uint32_t head, EventKind kind) {
  return EventHead(kind, FunctionOf(head), HasValues(head));
}

}  // namespace

// Fills items_ and events_; false if it met an event that makes no sense.
bool EventOrder::Parse(ByteView words, uint64_t base) {
  items_.clear();
  events_ = 0;
  for (size_t at = 0; at + sizeof(uint32_t) <= words.size();) {
    const uint32_t head = WordAt(words, at);
    if (head == 0) return true;
    const uint8_t bits = KindBitsOf(head);
    if (bits == 0 || bits >= kEventKinds) return false;
    const auto kind = static_cast<EventKind>(bits);
    const size_t size = EventWords(kind) * sizeof(uint32_t);
    if (size > words.size() - at) return false;
    const uint32_t first = WordAt(words, at + 4);
    const uint32_t second = size > 8 ? WordAt(words, at + 8) : 0;
    if (kind == EventKind::kBase) {
      base = uint64_t{second} << 32 | first;
      at += size;
      continue;
    }
    Item item{.start = base + first, .end = base + first, .head = head, .detail = second};
    at += size;
    if (kind == EventKind::kCall) {
      item.end += second;
    } else if (kind == EventKind::kLost && FunctionOf(head) >= kLossReasons) {
      return false;
    }
    if (HasValues(head)) {
      if (kind != EventKind::kEntry && kind != EventKind::kExit && kind != EventKind::kCall) {
        return false;
      }
      if (words.size() - at < sizeof(uint32_t)) return false;
      const size_t bytes = WordAt(words, at);
      const size_t padded = (bytes + 3) / 4 * 4;
      if (padded > words.size() - at - sizeof(uint32_t)) return false;
      item.detail = static_cast<uint32_t>(at);
      at += sizeof(uint32_t) + padded;
    }
    events_ += kind == EventKind::kCall ? 2 : 1;
    items_.push_back(item);
  }
  return true;
}

// Puts the entries items_[first, last), which stand behind each other in the chunk, into the stack.
void EventOrder::PlaceEntries(size_t first, size_t last, Counters& counters) {
  run_.clear();
  for (size_t i = first; i < last; ++i) {
    run_.push_back({.start = items_[i].start,
                    .head = items_[i].head,
                    .detail = items_[i].detail,
                    .certain = true});
  }
  const auto earlier = [](const Pending& a, const Pending& b) { return a.start < b.start; };
  if (!std::ranges::is_sorted(run_, earlier)) std::ranges::stable_sort(run_, earlier);
  lifted_.clear();
  while (!stack_.empty() && stack_.back().start >= run_.front().start &&
         lifted_.size() < kMaxLifted) {
    lifted_.push_back(stack_.back());
    stack_.pop_back();
  }
  if (!stack_.empty() && stack_.back().start > run_.front().start) {
    counters.Add("tracedata.bad_nesting");
    for (Pending& entry : run_) entry.start = std::max(entry.start, stack_.back().start);
  }
  std::ranges::reverse(lifted_);
  // Of equal ones, what stands first in the chunk is the outer one.
  std::ranges::merge(run_, lifted_, std::back_inserter(stack_), earlier);
}

void EventOrder::Append(ByteView words, uint64_t base, std::vector<OrderedEvent>& out,
                        Counters& counters) {
  if (!Parse(words, base)) counters.Add("tracedata.bad_event");
  out.resize(out.size() + events_);
  put_ = out.data() + out.size();
  stack_.clear();
  // In a chunk events stand in order of their ends. Backwards, a call's entry is due when an event
  // is met that ended before it began.
  for (size_t i = items_.size(); i > 0;) {
    const Item& item = items_[--i];
    const auto kind = static_cast<EventKind>(KindBitsOf(item.head));
    if (kind == EventKind::kEntry) {
      const size_t last = i + 1;
      while (i > 0 && KindBitsOf(items_[i - 1].head) == static_cast<uint8_t>(EventKind::kEntry)) {
        --i;
      }
      PlaceEntries(i, last, counters);
      continue;
    }
    const bool instant = kind == EventKind::kCall && item.start == item.end;
    while (!stack_.empty() &&
           (stack_.back().start > item.end ||
            (stack_.back().start == item.end && (!instant || stack_.back().certain)))) {
      PutEntry(stack_.back());
      stack_.pop_back();
    }
    if (kind != EventKind::kCall) {
      *--put_ = {item.end, item.head, item.detail};
      continue;
    }
    *--put_ = {item.end, WithKind(item.head, EventKind::kExit),
               HasValues(item.head) ? item.detail : 0};
    uint64_t start = item.start;
    if (!stack_.empty() && stack_.back().start > start) {
      counters.Add("tracedata.bad_nesting");
      start = stack_.back().start;
    }
    stack_.push_back({.start = start, .head = EventHead(EventKind::kEntry, FunctionOf(item.head))});
  }
  while (!stack_.empty()) {
    PutEntry(stack_.back());
    stack_.pop_back();
  }
}

}  // namespace stackreel::tracedata
