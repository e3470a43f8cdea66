// The stack that was unwound before, so that what the next one shares with it is only checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind/stack_words.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {

// How a caller is found depends on pc, sp, fp, the maps and the words that are read, nothing else.
// So a stack that comes to where the last one was, with the same in its registers, goes on as that
// did while the words that were read hold the same. These are at places that are known beforehand:
// they are loaded without waiting for each other, and no rule is looked up.
class LastStack {
 public:
  // A frame that was found by call-frame information of its caller, and how it was left.
  struct Step {
    uint64_t pc = 0, sp = 0, fp = 0;
    uint64_t ra_at = 0;  // where the caller's pc was read,
    uint64_t fp_at = 0;  // and its fp, if `reads_fp`
    bool fp_known = false;
    bool is_plain = false;         // a frame as above, not a sampled pc or one found in another way
    bool is_left_plainly = false;  // by reading these words only
    bool reads_fp = false;
  };

  // Before each stack; `version`: of its maps.
  void Begin(uint64_t version) {
    if (version != version_) steps_.clear();
    version_ = version;
    fresh_.clear();
    candidate_ = steps_.size();
    kept_ = 0;
  }

  // Where the stack is at `pc`, `sp` and `fp`, in a plain frame, appends to `out` the frames that
  // follow as in the last stack, up to `most`, but not the one that they lead to: that is `*at`
  // then. Gives how many these are; none if the last stack was never here.
  template <class Cpu>
  size_t Follow(const StackView& stack, size_t most, Step* at, std::vector<Frame>& out);
  // The stack goes on with `step`, after what was followed.
  void Add(const Step& step) {
    if (kept_ != 0) MoveKept(1);
    fresh_.push_back(step);
  }
  // It ends in `step`.
  void End(const Step& step) {
    if (kept_ == 0) fresh_.push_back(step);
    steps_.resize(kept_);
    steps_.insert(steps_.end(), fresh_.rbegin(), fresh_.rend());
  }

  // Calls f(address) for the words that were read.
  template <typename F>
  void ForEachRead(F f) const {
    for (const Step& step : steps_) {
      if (!step.is_left_plainly) continue;
      f(step.ra_at);
      if (step.reads_fp) f(step.fp_at);
    }
  }

 private:
  // The step behind `step` is `next`, in this stack too.
  template <class Cpu>
  static bool Holds(const StackView& stack, const Step& step, const Step& next) {
    uint64_t word = 0;
    if (!step.is_left_plainly || !ReadWord<Cpu>(stack, step.ra_at, word) || word != next.pc) {
      return false;
    }
    return !step.reads_fp || (ReadWord<Cpu>(stack, step.fp_at, word) && word == next.fp);
  }
  // Those of the kept ones from `end` inwards have to be told from the rest: they are fresh.
  void MoveKept(size_t end) {
    for (size_t i = kept_; i > end; --i) fresh_.push_back(steps_[i - 1]);
    kept_ = 0;
  }

  uint64_t version_ = 0;
  std::vector<Step> steps_;  // of the last stack, the outermost first
  std::vector<Step> fresh_;  // of this one, the innermost first
  size_t candidate_ = 0;     // steps_[candidate_ - 1]: the innermost this stack may come to
  size_t kept_ = 0;          // as many of steps_ are this stack's behind `fresh_`, if not 0
};

template <class Cpu>
size_t LastStack::Follow(const StackView& stack, size_t most, Step* at, std::vector<Frame>& out) {
  while (candidate_ > 0 && steps_[candidate_ - 1].sp < at->sp) --candidate_;
  if (candidate_ == 0) return 0;
  const Step& here = steps_[candidate_ - 1];
  const bool same = here.sp == at->sp && here.pc == at->pc && here.is_plain &&
                    here.fp_known == at->fp_known && (!at->fp_known || here.fp == at->fp);
  if (!same) return 0;
  size_t to = candidate_ - 1;
  while (to > 0 && candidate_ - 1 - to < most && Holds<Cpu>(stack, steps_[to], steps_[to - 1])) {
    const CodeAddress address{Avma(steps_[to].pc), CodeAddressKind::kReturnAddress};
    out.push_back({address, FrameOrigin::kCfi, /*signal=*/false});
    --to;
  }
  const size_t followed = candidate_ - 1 - to;
  if (followed == 0) return 0;
  *at = steps_[to];
  kept_ = candidate_;
  if (to > 0) MoveKept(to + 1);
  candidate_ = to + 1;
  return followed;
}

}  // namespace stackreel::unwind
