#include "analyze/deferred_queue.h"

namespace stackreel::analyze {

void DeferredQueue::OnChain(uint32_t tid, uint64_t cookie, const std::vector<uint64_t>& chain) {
  bool claimed = false;
  for (PendingSample& sample : queue_) {
    if (sample.awaited_cookie != cookie || sample.sample.tid != tid) continue;
    sample.deferred_chain = chain;
    sample.awaited_cookie.reset();
    claimed = true;
  }
  if (!claimed) ++unclaimed_;
}

std::optional<PendingSample> DeferredQueue::Pop(bool at_end) {
  if (queue_.empty()) return std::nullopt;
  PendingSample& first = queue_.front();
  if (first.awaited_cookie) {
    const bool full = queue_.size() > kMaxSamples || bytes_ > kMaxBytes;
    if (!full && !at_end) return std::nullopt;
    first.awaited_cookie.reset();
    ++given_up_;
  }
  PendingSample sample = std::move(first);
  queue_.pop_front();
  bytes_ -= sample.raw.bytes.size();
  return sample;
}

}  // namespace stackreel::analyze
