// Weights of samples laid over the forest that a profile's stacks are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/profile.h"

namespace stackreel::profile {

// What samples amount to: the sum of their weights, and how many there are.
struct Amount {
  uint64_t weight = 0;
  uint64_t samples = 0;
  Amount& operator+=(const Amount& other) {
    weight += other.weight;
    samples += other.samples;
    return *this;
  }
  // Never below zero: what is taken away is a part.
  Amount& operator-=(const Amount& other) {
    weight -= other.weight;
    samples -= other.samples;
    return *this;
  }
  friend bool operator==(const Amount&, const Amount&) = default;
};

// The callees of each stack: the forest seen from its roots. Time and space linear in the stacks.
class StackForest {
 public:
  explicit StackForest(const Profile& profile);
  [[nodiscard]] std::span<const StackId> callees(StackId stack) const {
    return {callees_.data() + starts_[stack], starts_[stack + 1] - starts_[stack]};
  }
  // For each stack the nearest caller whose frame has the same key, or kEmptyStack. `key_of_frame`
  // holds a key for each frame.
  [[nodiscard]] std::vector<StackId> NearestSame(const std::vector<uint32_t>& key_of_frame) const;

 private:
  const Profile& profile_;
  std::vector<size_t> starts_;
  std::vector<StackId> callees_;
};

// Own and inclusive amounts of each stack. Space is linear in the profile's stacks and is kept by
// Clear(), whose time is linear in the stacks touched.
class StackWeights {
 public:
  explicit StackWeights(const Profile& profile)
      : profile_(profile),
        self_(profile.stacks().size()),
        total_(profile.stacks().size()),
        is_touched_(profile.stacks().size()) {}

  void Add(StackId stack, const Amount& amount);
  // Sums the amounts up from callees to callers; after the last Add.
  void SumUp();
  void Clear();

  // The stacks that have an amount, callees before callers.
  [[nodiscard]] const std::vector<StackId>& touched() const { return touched_; }
  [[nodiscard]] const Amount& self(StackId stack) const { return self_[stack]; }
  [[nodiscard]] const Amount& total(StackId stack) const { return total_[stack]; }
  // Samples without any frame.
  [[nodiscard]] const Amount& without_stack() const { return without_stack_; }

 private:
  const Profile& profile_;
  std::vector<Amount> self_, total_;
  std::vector<bool> is_touched_;
  std::vector<StackId> touched_;
  Amount without_stack_;
};

}  // namespace stackreel::profile
