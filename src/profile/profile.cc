#include "profile/profile.h"

#include <initializer_list>

#include "base/check.h"

namespace stackreel::profile {
namespace {

// FNV-1a over words: good enough for ids, which are small and dense.
uint64_t HashWords(std::initializer_list<uint64_t> words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t word : words) {
    hash = (hash ^ word) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

uint64_t HashOf(const Frame& f) {
  const uint64_t bits =
      (f.inlined ? 1u : 0u) | (f.kernel ? 2u : 0u) | (f.jit ? 4u : 0u) | (f.marker ? 8u : 0u);
  return HashWords({f.function, f.module, f.file, f.line, f.address, bits});
}

bool SameButAmount(const ProfileSample& a, const ProfileSample& b) {
  return a.stack == b.stack && a.time == b.time && a.pid == b.pid && a.tid == b.tid &&
         a.cpu == b.cpu && a.comm == b.comm && a.event == b.event;
}

}  // namespace

FrameId Profile::AddFrame(const Frame& frame) {
  const uint64_t hash = HashOf(frame);
  const auto [first, last] = frame_ids_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (frames_[it->second] == frame) return it->second;
  }
  const auto id = static_cast<FrameId>(frames_.size());
  frames_.push_back(frame);
  frame_ids_.emplace(hash, id);
  return id;
}

StackId Profile::Push(StackId caller, FrameId frame) {
  CHECK(frame < frames_.size());
  CHECK(caller == kEmptyStack || caller < stacks_.size());
  const auto [it, added] =
      stack_ids_.try_emplace(uint64_t{caller} << 32 | frame, static_cast<StackId>(stacks_.size()));
  if (added) stacks_.push_back({caller, frame});
  return it->second;
}

void Profile::AddMerged(const ProfileSample& sample) {
  const uint64_t hash = HashWords(
      {sample.stack, sample.time, sample.pid, sample.tid, sample.cpu, sample.comm, sample.event});
  const auto [first, last] = sample_ids_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    ProfileSample& other = samples_[it->second];
    if (!SameButAmount(other, sample)) continue;
    other.weight += sample.weight;
    other.count += sample.count;
    return;
  }
  sample_ids_.emplace(hash, static_cast<uint32_t>(samples_.size()));
  samples_.push_back(sample);
}

std::vector<FrameId> Profile::FramesOf(StackId stack) const {
  std::vector<FrameId> frames;
  for (; stack != kEmptyStack; stack = stacks_[stack].caller)
    frames.push_back(stacks_[stack].frame);
  return frames;
}

}  // namespace stackreel::profile
