// Frames, stacks and weights, independent of where they came from.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/interner.h"

namespace stackreel::profile {

using TextId = StringInterner::Id;
using FrameId = uint32_t;
using StackId = uint32_t;
inline constexpr StackId kEmptyStack = UINT32_MAX;
inline constexpr FrameId kNoFrame = UINT32_MAX;

// One function in one module, as far as it was asked to be told apart (line, address).
struct Frame {
  TextId function = 0;  // "" with module and address only
  TextId module = 0;    // short name ("libc.so.6", "[kernel.kallsyms]")
  TextId file = 0;
  uint32_t line = 0;
  uint64_t address = 0;  // svma; 0 unless unresolved or asked for
  bool inlined = false;
  bool kernel = false;
  bool jit = false;
  bool marker = false;  // not code: "[truncated stack]" and the like
  friend bool operator==(const Frame&, const Frame&) = default;
};

// A stack is its caller's stack and one frame more. A caller's id is smaller than its callees'.
struct StackNode {
  StackId caller = kEmptyStack;
  FrameId frame = 0;
  friend bool operator==(const StackNode&, const StackNode&) = default;
};

inline constexpr uint32_t kNoNumber = UINT32_MAX;  // a pid, tid or cpu that was not recorded

struct ProfileSample {
  StackId stack = kEmptyStack;
  uint64_t weight = 0;  // the period
  uint64_t count = 1;   // how many samples this stands for
  uint64_t time = 0;    // nanoseconds; 0 if merged or not recorded
  uint32_t pid = kNoNumber, tid = kNoNumber, cpu = kNoNumber;
  TextId comm = 0;
  uint32_t event = 0;  // index into Facts::events
};

// Ids found again by what they stand for, which lies elsewhere. Open addressing with linear
// probing, four bytes a slot: Push is called for each frame of each sample.
class IdTable {
 public:
  // The id for which `equals(id)` holds, of those added with `hash`; else `fresh`, which is added.
  // `hash_of(id)` gives the hash of an id added before.
  template <typename Equals, typename HashOf>
  uint32_t FindOrAdd(uint64_t hash, uint32_t fresh, Equals equals, HashOf hash_of) {
    if (4 * (count_ + 1) > 3 * slots_.size()) Grow(hash_of);
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1)) {
      if (equals(slots_[at])) return slots_[at];
    }
    slots_[at] = fresh;
    ++count_;
    return fresh;
  }
  // That id, or `none`.
  template <typename Equals>
  [[nodiscard]] uint32_t Find(uint64_t hash, uint32_t none, Equals equals) const {
    if (slots_.empty()) return none;
    size_t at = hash & (slots_.size() - 1);
    for (; slots_[at] != kFree; at = (at + 1) & (slots_.size() - 1)) {
      if (equals(slots_[at])) return slots_[at];
    }
    return none;
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;

  template <typename HashOf>
  void Grow(HashOf hash_of) {
    std::vector<uint32_t> old(slots_.empty() ? 64 : 2 * slots_.size(), kFree);
    old.swap(slots_);
    for (const uint32_t id : old) {
      if (id == kFree) continue;
      size_t at = hash_of(id) & (slots_.size() - 1);
      while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = id;
    }
  }

  std::vector<uint32_t> slots_;  // a power of two
  size_t count_ = 0;
};

class Profile {
 public:
  TextId Intern(std::string_view text) { return strings_.Intern(text); }
  [[nodiscard]] std::string_view Text(TextId id) const { return strings_.Text(id); }
  FrameId AddFrame(const Frame& frame);
  StackId Push(StackId caller, FrameId frame);
  // The same if it was pushed before, else kEmptyStack.
  [[nodiscard]] StackId FindPushed(StackId caller, FrameId frame) const;
  void AddSample(const ProfileSample& sample) { samples_.push_back(sample); }
  // Adds to an earlier sample that differs in nothing but weight and count, or appends it. For
  // recordings with many samples of few stacks; leave `time` 0.
  void AddMerged(const ProfileSample& sample);

  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  [[nodiscard]] const std::vector<StackNode>& stacks() const { return stacks_; }
  [[nodiscard]] const std::vector<ProfileSample>& samples() const { return samples_; }
  // Frames of a stack, innermost first.
  [[nodiscard]] std::vector<FrameId> FramesOf(StackId stack) const;

  struct Unresolved {
    uint64_t frames = 0;
    std::string why;
  };
  // What every report states.
  struct Facts {
    uint64_t samples = 0, lost = 0;
    uint64_t user_stacks = 0, complete_stacks = 0;
    uint64_t frames = 0, unresolved_frames = 0;
    std::map<std::string, uint64_t> stack_ends;            // StackEndName → samples
    std::map<std::string, Unresolved> unresolved_modules;  // by module name
    // arm64: authentication mask, and where it is from → samples.
    std::map<std::pair<uint64_t, std::string>, uint64_t> masks;
    std::vector<std::string> events;
    std::vector<std::string> header;
    Counters counters;
    std::string damage;  // not empty: only part of the input was read
    // The recorder did not end: what it had not written yet is missing, nobody knows how much.
    bool unfinished = false;
  };
  Facts facts;

 private:
  StringInterner strings_;
  std::vector<Frame> frames_;
  IdTable frame_ids_;
  std::vector<StackNode> stacks_;
  IdTable stack_ids_;
  std::vector<ProfileSample> samples_;
  IdTable sample_ids_;  // of merged ones
};

}  // namespace stackreel::profile
