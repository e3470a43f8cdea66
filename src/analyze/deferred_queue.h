// Samples in order of time, held back while the first of them waits for its user chain.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "analyze/chain_builder.h"

namespace stackreel::analyze {

// Since Linux 6.19 a kernel may leave the user part of a chain until the task returns to user mode
// and then send it as CALLCHAIN_DEFERRED with the same tid and cookie. A task may stay in the
// kernel for long, so only so much is held; what is let go without its chain is counted.
class DeferredQueue {
 public:
  static constexpr size_t kMaxSamples = 4096;
  static constexpr size_t kMaxBytes = size_t{8} << 20;

  [[nodiscard]] bool empty() const { return queue_.empty(); }
  // How many samples went out without their user chain.
  [[nodiscard]] uint64_t given_up() const { return given_up_; }
  // Chains that no sample waited for.
  [[nodiscard]] uint64_t unclaimed() const { return unclaimed_; }

  void Push(PendingSample sample) {
    bytes_ += sample.raw.bytes.size();
    queue_.push_back(std::move(sample));
  }
  void OnChain(uint32_t tid, uint64_t cookie, const std::vector<uint64_t>& chain);
  // The next sample that need not wait; all of them, one by one, if `at_end`.
  std::optional<PendingSample> Pop(bool at_end);

 private:
  std::deque<PendingSample> queue_;
  size_t bytes_ = 0;
  uint64_t given_up_ = 0;
  uint64_t unclaimed_ = 0;
};

}  // namespace stackreel::analyze
