// The path that nearly every stack takes: pc, sp and the frame pointer only, rules from a cache.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

#include "unwind/counts.h"
#include "unwind/last_stack.h"
#include "unwind/rule_cache.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/fallback.h"
#include "unwind/x86_64/fast_rule.h"

namespace stackreel::unwind::x86_64 {

template <class Cpu>
class FastUnwinder {
 public:
  explicit FastUnwinder(Counts& counts) : counts_(counts) {}

  // Appends the frames of a stack, whose pc and sp are known. Nothing (and frames that do not
  // count) if a rule needs more than pc, sp and fp: a FullUnwinder has to do this stack.
  std::optional<StackEnd> Unwind(const UnwindInput& input, std::vector<Frame>& out);
  // Asks for the words of `stack` that lie where the last stack unwound was read: of two samples of
  // a thread, the outer frames are mostly the same.
  void PrefetchWhereLastRead(const StackView& stack);

 private:
  struct State {
    uint64_t pc, sp, fp;
    bool fp_known;
    bool exact;        // pc is an instruction's address, not a return address
    bool chain_ended;  // the frame-pointer chain led here, and to 0
    FrameOrigin origin;
  };
  // From where the stack is to its end.
  std::optional<StackEnd> UnwindFrom(const UnwindInput& input, State& state,
                                     std::vector<Frame>& out);
  const FastRule& FindRule(const State& state);
  // Goes as far as the last stack on this one's memory shows the way; gives the number of frames.
  size_t FollowLast(const UnwindInput& input, size_t most, State& state, std::vector<Frame>& out);
  [[nodiscard]] LastStack& LastAt(uint64_t sp);
  std::optional<StackEnd> Apply(const UnwindInput& input, const FastRule& rule, State& state);
  StackEnd OffTheStack(const UnwindInput& input, uint64_t at);
  void LoadFp(const UnwindInput& input, const FastRule& rule, uint64_t cfa, State& state);
  std::optional<StackEnd> ApplySignal(const UnwindInput& input, const FastRule& rule, State& state);
  std::optional<StackEnd> Fallback(const UnwindInput& input, const FastRule& rule, State& state);

  // Where a tracer's code or return point is come to: goes on behind it.
  enum class Detoured : uint8_t { kNo, kMoved, kFrame };
  std::expected<Detoured, StackEnd> FollowDetour(const UnwindInput& input, State& state,
                                                 std::vector<Frame>& out);
  // The innermost function's CFI led to no code: leaves it by its code instead.
  bool RescueInnermost(const UnwindInput& input, const State& first, State& state);
  void MoveTo(const Caller& caller, bool chain_ended, State& state);

  Counts& counts_;
  RuleCache<FastRule> rules_;
  bool needs_full_ = false;
  LastStack::Step step_;  // that is being made
  LastStack* last_ = nullptr;
  // Threads take turns, each on a stack of its own.
  std::array<LastStack, 16> last_stacks_;
};

}  // namespace stackreel::unwind::x86_64
