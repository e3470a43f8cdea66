// The functions of a trace with their calls and times.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analyze/trace_calls.h"
#include "base/error.h"

namespace stackreel::analyze {

// How often each duration was, to within 1/32 of it, in little memory.
class DurationCounts {
 public:
  void Add(uint64_t ticks) {
    const uint32_t bucket = BucketOf(ticks);
    const uint32_t octave = bucket / kBuckets;
    if (octaves_.size() <= octave) octaves_.resize(octave + 1);
    if (octaves_[octave] == nullptr) octaves_[octave] = std::make_unique<uint64_t[]>(kBuckets);
    ++octaves_[octave][bucket % kBuckets];
  }
  void Merge(const DurationCounts& other);
  // The duration that `fraction` of them do not exceed: the middle of its bucket; 0 if there are
  // none.
  [[nodiscard]] uint64_t Quantile(double fraction) const;

 private:
  static constexpr uint32_t kBucketBits = 4;
  static constexpr uint32_t kBuckets = 1 << kBucketBits;
  static uint32_t BucketOf(uint64_t ticks) {
    if (ticks < kBuckets) return static_cast<uint32_t>(ticks);
    const auto shift = static_cast<uint32_t>(std::bit_width(ticks)) - 1 - kBucketBits;
    return (shift + 1) * kBuckets + static_cast<uint32_t>(ticks >> shift) % kBuckets;
  }
  std::vector<std::unique_ptr<uint64_t[]>> octaves_;
};

// Times in ticks.
struct FunctionTimes {
  uint32_t function = 0;
  uint64_t calls = 0;
  uint64_t unfinished = 0;  // of calls: the trace ends within them; their time is until there
  uint64_t total = 0;       // with callees; of recursive calls only the outermost
  uint64_t self = 0;
  uint64_t sum = 0;  // of all calls: recursive ones too
  uint64_t min = UINT64_MAX, max = 0;
  DurationCounts durations;
};

struct TraceTable {
  std::vector<FunctionTimes> rows;  // those with calls, by function
  uint64_t calls = 0;
  uint64_t threads = 0;  // that have calls
  uint64_t first_ticks = 0, last_ticks = 0;
};

// Reads the whole trace, thread after thread.
Result<TraceTable> MakeTraceTable(TraceCalls& calls);

}  // namespace stackreel::analyze
