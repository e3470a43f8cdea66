// Records of several rings, put into the order of their time while they come in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::record {

// One round is one pass over all rings. A record that is in a ring when round n begins is taken in
// round n, so after round n nothing is still to come that is older than the youngest record of
// round n - 1: up to there records may be passed on.
class TimeOrder {
 public:
  struct Entry {
    uint64_t time = 0;
    ByteView record;
    uint64_t round = 0;
  };

  // `record` must stay where it is until it was passed on.
  void Add(uint64_t time, ByteView record) {
    entries_.push_back({.time = time, .record = record, .round = round_});
    youngest_ = std::max(youngest_, time);
  }

  // Passes on what may be, oldest first; equal times in the order they were added.
  template <typename Visit>
  Status EndRound(const Visit& visit) {
    const uint64_t limit = limit_;
    limit_ = youngest_;
    ++round_;
    return PassUpTo(limit, visit);
  }
  template <typename Visit>
  Status Finish(const Visit& visit) {
    return PassUpTo(UINT64_MAX, visit);
  }
  // No record of a round before this one is held any more.
  [[nodiscard]] uint64_t oldest_round() const {
    uint64_t oldest = round_;
    for (const Entry& entry : entries_) oldest = std::min(oldest, entry.round);
    return oldest;
  }
  // Records that came too late to stand where they belong.
  [[nodiscard]] uint64_t late() const { return late_; }

 private:
  template <typename Visit>
  Status PassUpTo(uint64_t limit, const Visit& visit) {
    std::ranges::stable_sort(entries_, {}, &Entry::time);
    const auto end = std::ranges::upper_bound(entries_, limit, {}, &Entry::time);
    for (auto it = entries_.begin(); it != end; ++it) {
      if (it->time < passed_) ++late_;
      passed_ = std::max(passed_, it->time);
      TRY(visit(*it));
    }
    entries_.erase(entries_.begin(), end);
    return {};
  }

  std::vector<Entry> entries_;
  uint64_t round_ = 0;
  uint64_t youngest_ = 0;  // time seen
  uint64_t limit_ = 0;     // youngest time of the rounds before this one
  uint64_t passed_ = 0;
  uint64_t late_ = 0;
};

}  // namespace stackreel::record
