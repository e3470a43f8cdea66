// Address ranges that may nest or overlap, made into a sorted list of which one is on top where.
#pragma once

#include <cstdint>
#include <vector>

namespace stackreel::dwarf {

class FlatIntervals {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // [lo, hi) has `value`, where no deeper one covers it; of equally deep ones that which starts
  // later is on top, and of those that start at one address the one added later.
  struct Interval {
    uint64_t lo = 0;
    uint64_t hi = 0;
    uint32_t value = 0;
    uint32_t depth = 0;
  };

  FlatIntervals() = default;
  // In n log n steps, whatever overlaps what; at most 2n pieces.
  explicit FlatIntervals(std::vector<Interval> intervals);

  // The value on top at an address, or kNone.
  [[nodiscard]] uint32_t Find(uint64_t address) const;
  [[nodiscard]] bool empty() const { return starts_.empty(); }

 private:
  void Append(uint64_t start, uint32_t value);

  // Piece i reaches from starts_[i] to starts_[i + 1]; the last one has kNone.
  std::vector<uint64_t> starts_;
  std::vector<uint32_t> values_;
};

}  // namespace stackreel::dwarf
