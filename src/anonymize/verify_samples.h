// Verification kind (f): the samples, one by one, in few bytes of memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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

// Whether names of IN and of OUT correspond one to one; the same, where they are not `renamed`, but
// for addresses that stood in them.
class NamePairs {
 public:
  explicit NamePairs(bool renamed) : renamed_(renamed) {}
  bool Same(std::string_view in, std::string_view out) {
    if (!renamed_ && in.empty() && out.empty()) return true;
    // Texts stay where they are, so most pairs are known by their places.
    Pair& pair = same_[(AddressOf(in) * 31 ^ AddressOf(out)) % same_.size()];
    if (pair.in.data() == in.data() && pair.out.data() == out.data() &&
        pair.in.size() == in.size() && pair.out.size() == out.size()) {
      return true;
    }
    if (!AreSame(in, out)) return false;
    pair = {in, out};
    return true;
  }

 private:
  struct Pair {
    std::string_view in, out;
  };
  static uintptr_t AddressOf(std::string_view text) {
    return reinterpret_cast<uintptr_t>(text.data()) / alignof(std::max_align_t);
  }
  bool AreSame(std::string_view in, std::string_view out);

  bool renamed_;
  std::map<std::string, std::string> out_of_, in_of_;
  std::array<Pair, 256> same_;
};

// The first frame that is not the same, or that there are not as many.
std::optional<std::string> DifferenceOf(std::span<const ComparedFrame> before,
                                        std::span<const ComparedFrame> after, NamePairs& modules,
                                        NamePairs& symbols);

// Compares frames; where levels rename modules, a name must stand for one name always. Calls
// `differs` with the number of each sample that is not the same, and what is not; ends where one of
// the recordings ends.
Status CompareFrames(ComparedSamples& in, ComparedSamples& out, Level level,
                     const std::function<void(uint64_t sample, std::string what)>& differs);

}  // namespace stackreel::anonymize
