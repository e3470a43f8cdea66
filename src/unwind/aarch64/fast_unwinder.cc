#include "unwind/aarch64/fast_unwinder.h"

#include "base/pointer_code.h"
#include "unwind/aarch64/fallback.h"
#include "unwind/aarch64/registers.h"
#include "unwind/aarch64/trampoline.h"
#include "unwind/find_cfi.h"
#include "unwind/stack_words.h"

namespace stackreel::unwind::aarch64 {
namespace {

// The rule at a pc by call-frame information, or what stands for it where there is none.
FastRule MakeRule(const UnwindMapping& mapping, uint64_t pc, bool exact, Counts& counts) {
  if (mapping.module == nullptr) return Only(FastKind::kUnknownCode);
  const UnwindModule& module = *mapping.module;
  const Svma svma(pc - mapping.bias);
  const FoundCfi found = FindCfi(module, svma, exact);
  if (found.outermost) return Only(FastKind::kOutermost);
  const bool may_be_signal = found.try_trampoline || found.fde->cie.signal_frame;
  if (may_be_signal && IsTrampoline(module, svma, exact)) return Only(FastKind::kSignal);
  if (!found.fde) {
    const auto scanned = ScanCode(module, svma);
    return scanned ? ScannedRule(*scanned) : Only(FastKind::kNoCfi);
  }
  dwarf::RowCursor rows = module.frames().Rows(*found.fde);
  if (!SeekRow(rows, found.lookup)) {
    ++counts.bad_rules;
    return Only(FastKind::kBadCfi);
  }
  const dwarf::Cie& cie = found.fde->cie;
  if (const auto corrected = WithCfaAboveReturnAddress(rows.row(), cie)) {
    return MakeFastRule(*corrected, cie);
  }
  return MakeFastRule(rows.row(), cie);
}

}  // namespace

const FastRule& FastUnwinder::FindRule(const State& state) {
  return rules_.Find(state.pc, state.exact, counts_, [&](const UnwindMapping* mapping) {
    if (mapping == nullptr) return Only(FastKind::kNoMapping);
    return MakeRule(*mapping, state.pc, state.exact, counts_);
  });
}

// Moves `state` to the caller by CFA, or says how the stack ends here. Nearly all frames come here,
// so it is made a part of its only caller.
[[gnu::always_inline]] inline std::optional<StackEnd> FastUnwinder::ApplyCfa(
    const UnwindInput& input, const FastRule& rule, State& state) {
  uint64_t cfa = 0;
  bool must_check = rule.is_guessed;
  if (rule.kind == FastKind::kCfaFromFp) {
    if (!state.fp_known) return StackEnd::kBadCfi;
    cfa = state.fp + static_cast<uint64_t>(int64_t{rule.cfa_offset});
  } else if (state.sp_known) {
    cfa = state.sp + static_cast<uint64_t>(int64_t{rule.cfa_offset});
    must_check = must_check || state.sp_guessed;
  } else {
    // x29 points to the frame record, and CFI says where the record is: cfa = x29 - fp_offset.
    const bool has_record = rule.fp == SavedAt::kCfa && rule.ra == SavedAt::kCfa &&
                            rule.ra_offset - rule.fp_offset == 8 && state.fp_known;
    if (!has_record) return StackEnd::kBadCfi;
    cfa = state.fp - static_cast<uint64_t>(int64_t{rule.fp_offset});
  }
  // Only a leaf may leave sp where it was.
  const bool is_leaf = rule.ra == SavedAt::kRegister;
  if (cfa < state.sp) return StackEnd::kBadCfa;
  if (cfa == state.sp && !is_leaf) return StackEnd::kNoAdvance;
  uint64_t ra = state.lr;
  if (is_leaf) {
    if (!state.lr_known) return StackEnd::kNoAdvance;
  } else {
    const uint64_t at = cfa + static_cast<uint64_t>(int64_t{rule.ra_offset});
    if (!input.stack.Read64(at, ra)) return EndOfUnreadable(input, at);
  }
  const uint64_t pc = StripCode(ra, input.code_mask);
  if (must_check && !IsReturnAddress(*input.maps, pc)) return StackEnd::kNoCfi;
  if (pc != ra && !rule.is_signed && !rule.is_guessed) ++counts_.codes_unannounced;
  if (rule.fp == SavedAt::kCfa) {
    const uint64_t at = cfa + static_cast<uint64_t>(int64_t{rule.fp_offset});
    state.fp_known = input.stack.Read64(at, state.fp);
  } else if (rule.fp == SavedAt::kNowhere) {
    state.fp_known = false;
  }
  state.pc = pc;
  state.sp = cfa;
  state.sp_known = true;
  state.sp_guessed = false;
  state.lr_known = false;
  state.exact = false;
  state.chain_ended = false;
  state.origin = is_leaf && rule.is_guessed ? FrameOrigin::kLeafLr
                 : rule.is_guessed          ? FrameOrigin::kFramePointer
                                            : FrameOrigin::kCfi;
  return std::nullopt;
}

std::optional<StackEnd> FastUnwinder::ApplySignal(const UnwindInput& input, State& state) {
  if (!state.sp_known) return StackEnd::kBadCfa;
  State next{};
  if (!input.stack.Read64(state.sp + kSavedSp, next.sp)) {
    return EndOfUnreadable(input, state.sp + kSavedSp);
  }
  if (!input.stack.Read64(state.sp + kSavedPc, next.pc)) {
    return EndOfUnreadable(input, state.sp + kSavedPc);
  }
  next.pc = StripCode(next.pc, input.code_mask);
  next.sp_known = true;
  next.fp_known = input.stack.Read64(state.sp + kSavedFp, next.fp);
  next.lr_known = input.stack.Read64(state.sp + kSavedLr, next.lr);
  next.exact = true;
  next.origin = FrameOrigin::kCfi;
  if (next.pc == state.pc && next.sp == state.sp) return StackEnd::kNoAdvance;
  state = next;
  return std::nullopt;
}

// By the link register, where the innermost function may not have saved it; else by x29.
std::optional<StackEnd> FastUnwinder::Fallback(const UnwindInput& input, const FastRule& rule,
                                               State& state) {
  const uint64_t lr = StripCode(state.lr, input.code_mask);
  if (state.lr_known && lr != state.pc && IsReturnAddress(*input.maps, lr)) {
    state.pc = lr;
    // A jump to where nothing is has left sp alone.
    state.sp_guessed = rule.kind != FastKind::kNoMapping;
    state.origin = FrameOrigin::kLeafLr;
  } else {
    if (state.chain_ended) return StackEnd::kRoot;
    const auto record = state.fp_known ? ReadFrameRecord(input, state.sp, state.fp) : std::nullopt;
    if (!record) return rule.kind == FastKind::kNoMapping ? StackEnd::kNoMapping : StackEnd::kNoCfi;
    ++counts_.frame_pointer_steps;
    state.pc = record->pc;
    state.sp = state.fp + 16;
    state.sp_known = false;
    state.sp_guessed = false;
    state.fp = record->fp;
    state.chain_ended = record->fp == 0;
    state.origin = FrameOrigin::kFramePointer;
  }
  state.lr_known = false;
  state.exact = false;
  return std::nullopt;
}

std::optional<StackEnd> FastUnwinder::Apply(const UnwindInput& input, const FastRule& rule,
                                            State& state) {
  switch (rule.kind) {
    case FastKind::kCfaFromSp:
    case FastKind::kCfaFromFp: {
      const auto end = ApplyCfa(input, rule, state);
      if (!end) [[likely]]
        return std::nullopt;
      const bool may_fall_back =
          end == StackEnd::kBadCfi || end == StackEnd::kNoAdvance || end == StackEnd::kNoCfi;
      if (!may_fall_back) return end;
      const auto fallen = Fallback(input, rule, state);
      return fallen == StackEnd::kNoCfi ? end : fallen;
    }
    case FastKind::kSignal:
      return ApplySignal(input, state);
    case FastKind::kUnknownCode:
      if (state.sp_known && IsSignalFrame(input, state.sp)) return ApplySignal(input, state);
      return Fallback(input, rule, state);
    case FastKind::kOutermost:
      return StackEnd::kRoot;
    case FastKind::kNoCfi:
    case FastKind::kNoMapping:
      return Fallback(input, rule, state);
    case FastKind::kBadCfi:
    case FastKind::kFullRegisters:
      break;
  }
  return StackEnd::kBadCfi;
}

std::optional<StackEnd> FastUnwinder::Unwind(const UnwindInput& input, std::vector<Frame>& out) {
  rules_.Begin(*input.maps);
  const Registers& registers = input.registers;
  State state{};
  state.pc = StripCode(registers.values[kPerfPc], input.code_mask);
  state.sp = registers.values[Cpu::kSp];
  state.fp = registers.values[Cpu::kFp];
  state.lr = registers.values[Cpu::kLr];
  state.sp_known = true;
  state.fp_known = registers.Has(Cpu::kFp);
  state.lr_known = registers.Has(Cpu::kLr);
  state.exact = true;
  state.origin = FrameOrigin::kSampled;
  for (size_t n = 0;; ++n) {
    if (state.pc == 0) return StackEnd::kRoot;
    const FastRule& rule = FindRule(state);
    if (rule.kind == FastKind::kNoMapping && n != 0) return StackEnd::kNoMapping;
    if (rule.kind == FastKind::kFullRegisters) return std::nullopt;
    if (n == input.max_frames) return StackEnd::kLimit;
    const CodeAddressKind kind =
        state.exact ? CodeAddressKind::kInstructionPointer : CodeAddressKind::kReturnAddress;
    out.push_back({{Avma(state.pc), kind}, state.origin, false});
    if (const auto end = Apply(input, rule, state)) return end;
    // Only a signal frame leads to an exact pc.
    out.back().signal = state.exact;
  }
}

}  // namespace stackreel::unwind::aarch64
