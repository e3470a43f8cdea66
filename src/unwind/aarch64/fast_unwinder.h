// The path that nearly every stack takes: pc, sp, x29 and lr only, rules from a cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "unwind/aarch64/fast_rule.h"
#include "unwind/counts.h"
#include "unwind/rule_cache.h"
#include "unwind/unwind.h"

namespace stackreel::unwind::aarch64 {

class FastUnwinder {
 public:
  explicit FastUnwinder(Counts& counts) : counts_(counts) {}

  // Appends the frames of a stack, whose pc and sp are known. Nothing (and frames that do not
  // count) if a rule needs more registers: a FullUnwinder has to do this stack.
  std::optional<StackEnd> Unwind(const UnwindInput& input, std::vector<Frame>& out);

 private:
  struct State {
    uint64_t pc, sp, fp, lr;
    bool sp_known;    // else sp is a floor: the frame was left by its frame record
    bool sp_guessed;  // by taking the callee, of which nothing is known, for one without a frame
    bool fp_known;
    bool lr_known;
    bool exact;        // pc is an instruction's address, not a return address
    bool chain_ended;  // the frame-pointer chain led here, and to 0
    FrameOrigin origin;
  };
  const FastRule& FindRule(const State& state);
  std::optional<StackEnd> Apply(const UnwindInput& input, const FastRule& rule, State& state);
  std::optional<StackEnd> ApplyCfa(const UnwindInput& input, const FastRule& rule, State& state);
  std::optional<StackEnd> ApplySignal(const UnwindInput& input, State& state);
  std::optional<StackEnd> Fallback(const UnwindInput& input, const FastRule& rule, State& state);

  Counts& counts_;
  RuleCache<FastRule> rules_;
};

}  // namespace stackreel::unwind::aarch64
