#include "profile/stack_weights.h"

#include <algorithm>
#include <functional>

namespace stackreel::profile {

StackForest::StackForest(const Profile& profile) : profile_(profile) {
  const std::vector<StackNode>& stacks = profile.stacks();
  // Counting sort by caller: starts_[c + 1] first holds the count, then the end of c's callees.
  starts_.assign(stacks.size() + 1, 0);
  for (const StackNode& node : stacks) {
    if (node.caller != kEmptyStack) ++starts_[node.caller + 1];
  }
  for (size_t i = 1; i < starts_.size(); ++i) starts_[i] += starts_[i - 1];
  callees_.resize(starts_.back());
  std::vector<size_t> next(starts_.begin(), starts_.end() - 1);
  for (StackId id = 0; id < stacks.size(); ++id) {
    if (stacks[id].caller != kEmptyStack) callees_[next[stacks[id].caller]++] = id;
  }
}

std::vector<StackId> StackForest::NearestSame(const std::vector<uint32_t>& key_of_frame) const {
  const std::vector<StackNode>& stacks = profile_.stacks();
  const uint32_t key_count =
      key_of_frame.empty() ? 0 : *std::max_element(key_of_frame.begin(), key_of_frame.end()) + 1;
  std::vector<StackId> nearest(stacks.size(), kEmptyStack);
  std::vector<StackId> on_path(key_count, kEmptyStack);  // innermost stack of each key
  // Depth first without recursion: a stack is entered when first met and left when met again.
  std::vector<StackId> pending;
  std::vector<bool> entered(stacks.size());
  for (StackId root = 0; root < stacks.size(); ++root) {
    if (stacks[root].caller != kEmptyStack) continue;
    pending.push_back(root);
    while (!pending.empty()) {
      const StackId id = pending.back();
      StackId& innermost = on_path[key_of_frame[stacks[id].frame]];
      if (entered[id]) {
        innermost = nearest[id];
        pending.pop_back();
        continue;
      }
      entered[id] = true;
      nearest[id] = innermost;
      innermost = id;
      for (StackId callee : callees(id)) pending.push_back(callee);
    }
  }
  return nearest;
}

void StackWeights::Add(StackId stack, const Amount& amount) {
  if (stack == kEmptyStack) {
    without_stack_ += amount;
    return;
  }
  self_[stack] += amount;
  for (; stack != kEmptyStack && !is_touched_[stack]; stack = profile_.stacks()[stack].caller) {
    is_touched_[stack] = true;
    touched_.push_back(stack);
  }
}

void StackWeights::SumUp() {
  std::sort(touched_.begin(), touched_.end(), std::greater<>());
  for (StackId stack : touched_) {
    total_[stack] += self_[stack];
    const StackId caller = profile_.stacks()[stack].caller;
    if (caller != kEmptyStack) total_[caller] += total_[stack];
  }
}

void StackWeights::Clear() {
  for (StackId stack : touched_) {
    self_[stack] = {};
    total_[stack] = {};
    is_touched_[stack] = false;
  }
  touched_.clear();
  without_stack_ = {};
}

}  // namespace stackreel::profile
