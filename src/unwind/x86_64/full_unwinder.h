// The path of stacks that need more than pc, sp and fp: all general registers, general expressions.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dwarf/cfi.h"
#include "unwind/counts.h"
#include "unwind/frame_view.h"
#include "unwind/rule_cache.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/code_scan.h"
#include "unwind/x86_64/fallback.h"
#include "unwind/x86_64/registers.h"
#include "unwind/x86_64/trampoline.h"

namespace stackreel::unwind::x86_64 {

template <class Cpu>
class FullUnwinder {
 public:
  explicit FullUnwinder(Counts& counts) : counts_(counts) {}

  // Appends the frames of a stack, whose pc and sp are known.
  StackEnd Unwind(const UnwindInput& input, std::vector<Frame>& out);

 private:
  struct State : RegisterFile<Cpu> {
    bool exact = true;
    bool chain_ended = false;
    FrameOrigin origin = FrameOrigin::kSampled;

    [[nodiscard]] uint64_t pc() const { return this->values[Cpu::kIp]; }
    [[nodiscard]] uint64_t sp() const { return this->values[Cpu::kSp]; }
  };
  // A row without the registers it does not speak of.
  struct Rule {
    enum class Kind : uint8_t { kRow, kTrampoline, kOutermost, kScanned, kNoCfi, kBadCfi };
    Kind kind = Kind::kNoCfi;
    bool signal_frame = false;
    bool pc_in_register = false;  // the caller's
    dwarf::CfaRule cfa;
    std::vector<std::pair<uint8_t, dwarf::RegisterRule>> registers;
    const SavedRegisters<Cpu>* trampoline = nullptr;
    ScannedFrame scanned;
  };

  const Rule& FindRule(const UnwindMapping& mapping, const State& state);
  Rule MakeRule(const UnwindModule& module, Svma pc, bool exact);
  std::optional<StackEnd> Apply(const UnwindInput& input, const Rule& rule, uint64_t bias,
                                State& state);
  std::optional<StackEnd> ApplyRow(const UnwindInput& input, const Rule& rule, uint64_t bias,
                                   State& state);
  std::optional<StackEnd> ApplyTrampoline(const UnwindInput& input,
                                          const SavedRegisters<Cpu>& layout, State& state);
  std::optional<StackEnd> Fallback(const UnwindInput& input, const Rule& rule, State& state);
  // As in FastUnwinder.
  enum class Detoured : uint8_t { kNo, kMoved, kFrame };
  std::expected<Detoured, StackEnd> FollowDetour(const UnwindInput& input, State& state,
                                                 std::vector<Frame>& out);
  bool RescueInnermost(const UnwindInput& input, const State& first, State& state);
  void MoveTo(const Caller& caller, bool chain_ended, State& state);

  Counts& counts_;
  std::unordered_map<RuleKey, Rule, RuleKeyHash> rules_;
};

}  // namespace stackreel::unwind::x86_64
