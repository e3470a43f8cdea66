#include "profile/profile.h"

#include <initializer_list>

#include "base/check.h"

namespace stackreel::profile {
namespace {

// Multiply and shift, so that the low bits, which choose a slot, depend on all bits of each word.
uint64_t HashWords(std::initializer_list<uint64_t> words) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t word : words) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

uint64_t HashOf(const Frame& f) {
  const uint64_t bits =
      (f.inlined ? 1u : 0u) | (f.kernel ? 2u : 0u) | (f.jit ? 4u : 0u) | (f.marker ? 8u : 0u);
  return HashWords({f.function, f.module, f.file, f.line, f.address, bits});
}

uint64_t HashOf(const StackNode& node) { return HashWords({node.caller, node.frame}); }

uint64_t HashOf(const ProfileSample& s) {
  return HashWords({s.stack, s.time, s.pid, s.tid, s.cpu, s.comm, s.event});
}

bool SameButAmount(const ProfileSample& a, const ProfileSample& b) {
  return a.stack == b.stack && a.time == b.time && a.pid == b.pid && a.tid == b.tid &&
         a.cpu == b.cpu && a.comm == b.comm && a.event == b.event;
}

}  // namespace

FrameId Profile::AddFrame(const Frame& frame) {
  const auto fresh = static_cast<FrameId>(frames_.size());
  const FrameId id = frame_ids_.FindOrAdd(
      HashOf(frame), fresh, [&](FrameId other) { return frames_[other] == frame; },
      [&](FrameId other) { return HashOf(frames_[other]); });
  if (id == fresh) frames_.push_back(frame);
  return id;
}

StackId Profile::Push(StackId caller, FrameId frame) {
  CHECK(frame < frames_.size());
  CHECK(caller == kEmptyStack || caller < stacks_.size());
  const auto fresh = static_cast<StackId>(stacks_.size());
  CHECK(fresh != kEmptyStack);
  const StackNode node{caller, frame};
  const StackId id = stack_ids_.FindOrAdd(
      HashOf(node), fresh, [&](StackId other) { return stacks_[other] == node; },
      [&](StackId other) { return HashOf(stacks_[other]); });
  if (id == fresh) stacks_.push_back(node);
  return id;
}

StackId Profile::FindPushed(StackId caller, FrameId frame) const {
  const StackNode node{caller, frame};
  return stack_ids_.Find(HashOf(node), kEmptyStack,
                         [&](StackId other) { return stacks_[other] == node; });
}

void Profile::AddMerged(const ProfileSample& sample) {
  const auto fresh = static_cast<uint32_t>(samples_.size());
  const uint32_t id = sample_ids_.FindOrAdd(
      HashOf(sample), fresh, [&](uint32_t other) { return SameButAmount(samples_[other], sample); },
      [&](uint32_t other) { return HashOf(samples_[other]); });
  if (id == fresh) {
    samples_.push_back(sample);
    return;
  }
  samples_[id].weight += sample.weight;
  samples_[id].count += sample.count;
}

std::vector<FrameId> Profile::FramesOf(StackId stack) const {
  std::vector<FrameId> frames;
  for (; stack != kEmptyStack; stack = stacks_[stack].caller)
    frames.push_back(stacks_[stack].frame);
  return frames;
}

}  // namespace stackreel::profile
