// Half-open intervals [start, end) that never overlap; a later one replaces what it covers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace stackreel {

// A sorted vector of intervals. Value must be copyable; when an interval is split, `Advance(value,
// n)` (found by argument-dependent lookup) makes the value of the part that begins n later.
template <typename Value>
class IntervalMap {
 public:
  struct Entry {
    uint64_t start = 0;
    uint64_t end = 0;
    Value value;
  };

  // Sets [start, end) to value; does nothing if it is empty.
  void Assign(uint64_t start, uint64_t end, Value value) {
    if (start >= end) return;
    const size_t at = Clear(start, end);
    entries_.insert(entries_.begin() + static_cast<std::ptrdiff_t>(at),
                    Entry{start, end, std::move(value)});
  }
  void Erase(uint64_t start, uint64_t end) {
    if (start < end) Clear(start, end);
  }
  [[nodiscard]] const Entry* Find(uint64_t key) const {
    auto it = std::upper_bound(entries_.begin(), entries_.end(), key,
                               [](uint64_t k, const Entry& e) { return k < e.start; });
    if (it == entries_.begin()) return nullptr;
    --it;
    return key < it->end ? &*it : nullptr;
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] size_t size() const { return entries_.size(); }
  void clear() { entries_.clear(); }

 private:
  // Removes [start, end), splitting what straddles its ends; returns where it was.
  size_t Clear(uint64_t start, uint64_t end) {
    auto first = std::lower_bound(entries_.begin(), entries_.end(), start,
                                  [](const Entry& e, uint64_t k) { return e.end <= k; });
    auto last = first;
    std::vector<Entry> kept;
    for (; last != entries_.end() && last->start < end; ++last) {
      if (last->start < start) kept.push_back(Entry{last->start, start, last->value});
      if (last->end > end) {
        Value tail = last->value;
        Advance(tail, end - last->start);
        kept.push_back(Entry{end, last->end, std::move(tail)});
      }
    }
    const size_t index = static_cast<size_t>(first - entries_.begin());
    const size_t before = !kept.empty() && kept.front().start < start ? 1 : 0;
    auto at = entries_.erase(first, last);
    entries_.insert(at, kept.begin(), kept.end());
    return index + before;
  }

  std::vector<Entry> entries_;
};

}  // namespace stackreel
