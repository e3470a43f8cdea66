// The path of stacks that need more than pc, sp, x29 and lr: all registers, general expressions.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dwarf/cfi.h"
#include "unwind/aarch64/code_scan.h"
#include "unwind/aarch64/registers.h"
#include "unwind/counts.h"
#include "unwind/frame_view.h"
#include "unwind/rule_cache.h"
#include "unwind/unwind.h"

namespace stackreel::unwind::aarch64 {

class FullUnwinder {
 public:
  explicit FullUnwinder(Counts& counts) : counts_(counts) {}

  // Appends the frames of a stack, whose pc and sp are known.
  StackEnd Unwind(const UnwindInput& input, std::vector<Frame>& out);

 private:
  struct State {
    RegisterFile<Cpu> registers;  // sp among them, unless the frame was left by its frame record
    uint64_t pc = 0;
    uint64_t sp_floor = 0;
    bool sp_guessed = false;  // as in FastUnwinder
    bool exact = true;
    bool chain_ended = false;
    FrameOrigin origin = FrameOrigin::kSampled;
  };
  // A row without the registers it does not speak of.
  struct Rule {
    enum class Kind : uint8_t { kRow, kSignal, kOutermost, kScanned, kNoCfi, kBadCfi };
    Kind kind = Kind::kNoCfi;
    bool is_signal_frame = false;
    bool is_signed = false;
    uint16_t return_address_register = Cpu::kLr;
    dwarf::CfaRule cfa;
    std::vector<std::pair<uint8_t, dwarf::RegisterRule>> registers;
    ScannedFrame scanned;
  };

  const Rule& FindRule(const UnwindMapping& mapping, const State& state);
  static Rule MakeRule(const UnwindModule& module, Svma pc, bool exact);
  std::optional<StackEnd> Apply(const UnwindInput& input, const UnwindMapping* mapping,
                                const Rule& rule, State& state);
  std::optional<StackEnd> ApplyRow(const UnwindInput& input, const Rule& rule, uint64_t bias,
                                   State& state);
  std::optional<StackEnd> ApplySignal(const UnwindInput& input, State& state);
  bool ApplyScanned(const UnwindInput& input, const ScannedFrame& scanned, State& state);
  std::optional<StackEnd> Fallback(const UnwindInput& input, const UnwindMapping* mapping,
                                   State& state);

  Counts& counts_;
  std::unordered_map<RuleKey, Rule, RuleKeyHash> rules_;
};

}  // namespace stackreel::unwind::aarch64
