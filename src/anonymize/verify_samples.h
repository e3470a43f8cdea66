// Verification kind (f): the samples, one by one, in few bytes of memory.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "anonymize/level.h"
#include "anonymize/verify.h"

namespace stackreel::anonymize {

// What of a sample both recordings have, besides its frames.
struct SampleFacts {
  uint32_t event = 0;
  uint64_t time = 0, period = 0;
  friend bool operator==(const SampleFacts&, const SampleFacts&) = default;
};

// A number for every 256 samples, and how many there are.
class SampleDigests {
 public:
  static constexpr uint64_t kBlock = 256;
  // Where a level shifts times, they count from the first.
  explicit SampleDigests(Level level) : shifted_(level >= Level::kIdentity) {}
  void Add(SampleFacts facts);
  [[nodiscard]] uint64_t count() const { return count_; }
  // The number of the first block that is not the same, of the shorter one's blocks or one behind.
  [[nodiscard]] uint64_t FirstDifference(const SampleDigests& other) const;
  // Of two at one level.
  friend bool operator==(const SampleDigests& a, const SampleDigests& b) {
    return a.count_ == b.count_ && a.blocks_ == b.blocks_;
  }

 private:
  bool shifted_;
  uint64_t first_time_ = 0, count_ = 0;
  bool has_first_time_ = false;
  std::vector<uint64_t> blocks_;
};

// Compares frames; where levels rename modules, a name must stand for one name always. Calls
// `differs` with the number of each sample that is not the same, and what is not; ends where one of
// the recordings ends.
Status CompareFrames(ComparedSamples& in, ComparedSamples& out, Level level,
                     const std::function<void(uint64_t sample, std::string what)>& differs);

}  // namespace stackreel::anonymize
