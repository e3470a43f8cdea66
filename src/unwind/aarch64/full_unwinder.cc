#include "unwind/aarch64/full_unwinder.h"

#include "base/pointer_code.h"
#include "unwind/aarch64/fallback.h"
#include "unwind/aarch64/fast_rule.h"
#include "unwind/aarch64/trampoline.h"
#include "unwind/find_cfi.h"

namespace stackreel::unwind::aarch64 {
namespace {

using dwarf::RegisterRule;
using dwarf::RuleKind;

constexpr size_t kMaxRules = 1 << 14;

const RegisterRule* FindSaved(const std::vector<std::pair<uint8_t, RegisterRule>>& registers,
                              unsigned reg) {
  for (const auto& [number, rule] : registers) {
    if (number == reg) return &rule;
  }
  return nullptr;
}

}  // namespace

auto FullUnwinder::MakeRule(const UnwindModule& module, Svma pc, bool exact) -> Rule {
  Rule rule;
  const FoundCfi found = FindCfi(module, pc, exact);
  if (found.outermost) {
    rule.kind = Rule::Kind::kOutermost;
    return rule;
  }
  const bool may_be_signal = found.try_trampoline || found.fde->cie.signal_frame;
  if (may_be_signal && IsTrampoline(module, pc, exact)) {
    rule.kind = Rule::Kind::kSignal;
    return rule;
  }
  if (!found.fde) {
    if (const auto scanned = ScanCode(module, pc)) {
      rule.kind = Rule::Kind::kScanned;
      rule.scanned = *scanned;
    }
    return rule;
  }
  const dwarf::Cie& cie = found.fde->cie;
  dwarf::RowCursor rows = module.frames().Rows(*found.fde);
  if (cie.return_address_register >= Cpu::kRegisters || !SeekRow(rows, found.lookup)) {
    rule.kind = Rule::Kind::kBadCfi;
    return rule;
  }
  const auto corrected = WithCfaAboveReturnAddress(rows.row(), cie);
  const dwarf::Row& row = corrected ? *corrected : rows.row();
  rule.return_address_register = cie.return_address_register;
  const bool has_caller = row.registers[cie.return_address_register].kind != RuleKind::kUndefined;
  rule.kind = has_caller ? Rule::Kind::kRow : Rule::Kind::kOutermost;
  rule.is_signal_frame = has_caller && cie.signal_frame;
  rule.is_signed = row.registers[dwarf::kAarch64RaSignState].offset != 0;
  rule.cfa = row.cfa;
  for (uint8_t reg = 0; reg < Cpu::kRegisters; ++reg) {
    const RegisterRule& saved = row.registers[reg];
    if (saved.kind != RuleKind::kSameValue) rule.registers.emplace_back(reg, saved);
  }
  return rule;
}

auto FullUnwinder::FindRule(const UnwindMapping& mapping, const State& state) -> const Rule& {
  const Svma pc(state.pc - mapping.bias);
  if (rules_.size() >= kMaxRules) rules_.clear();
  auto [it, fresh] = rules_.try_emplace({mapping.module->serial(), state.exact, pc.value});
  if (fresh) it->second = MakeRule(*mapping.module, pc, state.exact);
  return it->second;
}

std::optional<StackEnd> FullUnwinder::ApplyRow(const UnwindInput& input, const Rule& rule,
                                               uint64_t bias, State& state) {
  const FrameView<Cpu> view(input, state.registers);
  auto cfa = view.Cfa(rule.cfa, bias);
  const RegisterRule* ra = FindSaved(rule.registers, rule.return_address_register);
  if (!cfa) {
    // x29 points to the frame record, and CFI says where the record is.
    const RegisterRule* fp = FindSaved(rule.registers, Cpu::kFp);
    const bool has_record = !rule.cfa.is_expression && rule.cfa.reg == Cpu::kSp && fp != nullptr &&
                            ra != nullptr && fp->kind == RuleKind::kOffset &&
                            ra->kind == RuleKind::kOffset && ra->offset - fp->offset == 8 &&
                            state.registers.Has(Cpu::kFp);
    if (!has_record) return view.Failure();
    cfa = state.registers.values[Cpu::kFp] - static_cast<uint64_t>(fp->offset);
  }
  const bool is_leaf = ra == nullptr;
  if (!rule.is_signal_frame) {
    if (*cfa < state.sp_floor) return StackEnd::kBadCfa;
    const bool may_stay = is_leaf || (state.exact && ra->kind == RuleKind::kRegister);
    if (*cfa == state.sp_floor && !may_stay) return StackEnd::kNoAdvance;
  }
  const auto return_address =
      is_leaf ? view.Register(rule.return_address_register) : view.Caller(*ra, *cfa, bias);
  if (!return_address) return is_leaf ? StackEnd::kNoAdvance : view.Failure();
  const uint64_t pc = StripCode(*return_address, input.code_mask);
  const bool by_guess = state.sp_guessed && !rule.cfa.is_expression && rule.cfa.reg == Cpu::kSp;
  if (by_guess && !IsReturnAddress(*input.maps, pc)) return StackEnd::kNoCfi;
  State caller = state;
  caller.registers.Set(Cpu::kSp, *cfa);
  for (const auto& [reg, saved] : rule.registers) {
    const auto value = view.Caller(saved, *cfa, bias);
    if (value) {
      caller.registers.Set(reg, *value);
    } else if (reg == Cpu::kSp) {
      return view.Failure();
    } else {
      caller.registers.Forget(reg);
    }
  }
  caller.pc = pc;
  caller.sp_guessed = false;
  if (caller.pc != *return_address && !rule.is_signed) ++counts_.codes_unannounced;
  // A call put its own return address there.
  if (!rule.is_signal_frame) caller.registers.Forget(Cpu::kLr);
  caller.sp_floor = caller.registers.values[Cpu::kSp];
  caller.exact = rule.is_signal_frame;
  caller.chain_ended = false;
  caller.origin = FrameOrigin::kCfi;
  if (caller.pc == state.pc && caller.sp_floor == state.sp_floor) return StackEnd::kNoAdvance;
  state = caller;
  return std::nullopt;
}

std::optional<StackEnd> FullUnwinder::ApplySignal(const UnwindInput& input, State& state) {
  if (!state.registers.Has(Cpu::kSp)) return StackEnd::kBadCfa;
  const uint64_t sp = state.registers.values[Cpu::kSp];
  State caller;
  if (!input.stack.Read64(sp + kSavedPc, caller.pc)) {
    return EndOfUnreadable(input, sp + kSavedPc);
  }
  for (unsigned reg = 0; reg < Cpu::kRegisters; ++reg) {
    uint64_t value = 0;
    if (input.stack.Read64(sp + kSavedX0 + uint64_t{8} * reg, value))
      caller.registers.Set(reg, value);
  }
  if (!caller.registers.Has(Cpu::kSp)) return EndOfUnreadable(input, sp + kSavedSp);
  caller.pc = StripCode(caller.pc, input.code_mask);
  caller.sp_floor = caller.registers.values[Cpu::kSp];
  caller.origin = FrameOrigin::kCfi;
  if (caller.pc == state.pc && caller.sp_floor == sp) return StackEnd::kNoAdvance;
  state = caller;
  return std::nullopt;
}

bool FullUnwinder::ApplyScanned(const UnwindInput& input, const ScannedFrame& scanned,
                                State& state) {
  const unsigned base = scanned.from_fp ? Cpu::kFp : Cpu::kSp;
  if (!state.registers.Has(base)) return false;
  const uint64_t cfa =
      state.registers.values[base] + static_cast<uint64_t>(int64_t{scanned.cfa_offset});
  if (cfa < state.sp_floor) return false;
  uint64_t ra = state.registers.values[Cpu::kLr];
  if (scanned.ra_offset) {
    const uint64_t at = cfa + static_cast<uint64_t>(int64_t{*scanned.ra_offset});
    if (cfa == state.sp_floor || !input.stack.Read64(at, ra)) return false;
  } else if (!state.registers.Has(Cpu::kLr)) {
    return false;
  }
  ra = StripCode(ra, input.code_mask);
  if (!IsReturnAddress(*input.maps, ra)) return false;
  uint64_t fp = 0;
  if (scanned.fp_offset) {
    if (input.stack.Read64(cfa + static_cast<uint64_t>(int64_t{*scanned.fp_offset}), fp)) {
      state.registers.Set(Cpu::kFp, fp);
    } else {
      state.registers.Forget(Cpu::kFp);
    }
  } else if (scanned.fp_unknown) {
    state.registers.Forget(Cpu::kFp);
  }
  state.pc = ra;
  state.registers.Set(Cpu::kSp, cfa);
  state.registers.Forget(Cpu::kLr);
  state.sp_floor = cfa;
  state.sp_guessed = false;
  state.exact = false;
  state.chain_ended = false;
  state.origin = scanned.ra_offset ? FrameOrigin::kFramePointer : FrameOrigin::kLeafLr;
  return true;
}

// As in FastUnwinder.
std::optional<StackEnd> FullUnwinder::Fallback(const UnwindInput& input,
                                               const UnwindMapping* mapping, State& state) {
  RegisterFile<Cpu>& registers = state.registers;
  const uint64_t lr = StripCode(registers.values[Cpu::kLr], input.code_mask);
  if (registers.Has(Cpu::kLr) && lr != state.pc && IsReturnAddress(*input.maps, lr)) {
    state.pc = lr;
    state.sp_guessed = mapping != nullptr;
    state.origin = FrameOrigin::kLeafLr;
    registers.Forget(Cpu::kLr);
  } else {
    if (state.chain_ended) return StackEnd::kRoot;
    if (!registers.Has(Cpu::kFp)) return StackEnd::kNoCfi;
    const uint64_t fp = registers.values[Cpu::kFp];
    const auto record = ReadFrameRecord(input, state.sp_floor, fp);
    if (!record) return StackEnd::kNoCfi;
    ++counts_.frame_pointer_steps;
    registers.known = 0;  // what else the function saved is not known
    registers.Set(Cpu::kFp, record->fp);
    state.pc = record->pc;
    state.sp_floor = fp + 16;
    state.sp_guessed = false;
    state.chain_ended = record->fp == 0;
    state.origin = FrameOrigin::kFramePointer;
  }
  state.exact = false;
  return std::nullopt;
}

// Moves `state` to the caller, or says how the stack ends here.
std::optional<StackEnd> FullUnwinder::Apply(const UnwindInput& input, const UnwindMapping* mapping,
                                            const Rule& rule, State& state) {
  switch (rule.kind) {
    case Rule::Kind::kOutermost:
      return StackEnd::kRoot;
    case Rule::Kind::kBadCfi:
      return StackEnd::kBadCfi;
    case Rule::Kind::kSignal:
      return ApplySignal(input, state);
    case Rule::Kind::kRow: {
      const auto end = ApplyRow(input, rule, mapping->bias, state);
      const bool may_fall_back =
          end == StackEnd::kBadCfi || end == StackEnd::kNoAdvance || end == StackEnd::kNoCfi;
      if (!may_fall_back) return end;
      const auto fallen = Fallback(input, mapping, state);
      return fallen == StackEnd::kNoCfi ? end : fallen;
    }
    case Rule::Kind::kScanned:
      if (ApplyScanned(input, rule.scanned, state)) return std::nullopt;
      break;
    case Rule::Kind::kNoCfi: {
      const bool unknown_code = mapping != nullptr && mapping->module == nullptr;
      if (unknown_code && state.registers.Has(Cpu::kSp) &&
          IsSignalFrame(input, state.registers.values[Cpu::kSp])) {
        return ApplySignal(input, state);
      }
      break;
    }
  }
  return Fallback(input, mapping, state);
}

StackEnd FullUnwinder::Unwind(const UnwindInput& input, std::vector<Frame>& out) {
  static const Rule kNoFile;
  State state;
  for (unsigned reg = 0; reg < Cpu::kRegisters; ++reg) {
    if (input.registers.Has(reg)) state.registers.Set(reg, input.registers.values[reg]);
  }
  state.pc = StripCode(input.registers.values[kPerfPc], input.code_mask);
  state.sp_floor = state.registers.values[Cpu::kSp];
  for (size_t n = 0;; ++n) {
    if (state.pc == 0) return StackEnd::kRoot;
    const UnwindMapping* mapping = input.maps->FindCode(state.pc, state.exact);
    if (mapping == nullptr && n != 0) return StackEnd::kNoMapping;
    if (n == input.max_frames) return StackEnd::kLimit;
    const bool has_file = mapping != nullptr && mapping->module != nullptr;
    const Rule& rule = has_file ? FindRule(*mapping, state) : kNoFile;
    const CodeAddressKind kind =
        state.exact ? CodeAddressKind::kInstructionPointer : CodeAddressKind::kReturnAddress;
    out.push_back({{Avma(state.pc), kind}, state.origin, false});
    if (const auto end = Apply(input, mapping, rule, state)) {
      return mapping == nullptr && *end == StackEnd::kNoCfi ? StackEnd::kNoMapping : *end;
    }
    out.back().signal = state.exact;
  }
}

}  // namespace stackreel::unwind::aarch64
