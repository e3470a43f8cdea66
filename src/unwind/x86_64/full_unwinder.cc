#include "unwind/x86_64/full_unwinder.h"

#include <type_traits>

#include "unwind/find_cfi.h"
#include "unwind/stack_words.h"
#include "unwind/x86_64/detour_steps.h"
#include "unwind/x86_64/fallback.h"

namespace stackreel::unwind::x86_64 {
namespace {

using dwarf::RegisterRule;
using dwarf::RuleKind;

constexpr size_t kMaxRules = 1 << 14;

}  // namespace

template <class Cpu>
auto FullUnwinder<Cpu>::MakeRule(const UnwindModule& module, Svma pc, bool exact) -> Rule {
  Rule rule;
  const FoundCfi found = FindCfi(module, pc, exact);
  if (found.outermost) {
    rule.kind = Rule::Kind::kOutermost;
    return rule;
  }
  if (found.try_trampoline) rule.trampoline = FindTrampoline<Cpu>(module, pc, exact);
  if (rule.trampoline != nullptr) {
    rule.kind = Rule::Kind::kTrampoline;
    rule.signal_frame = true;
    return rule;
  }
  if (!found.fde) {
    if (const auto scanned = ScanCode(module, pc, Cpu::kWordSize)) {
      rule.kind = Rule::Kind::kScanned;
      rule.scanned = *scanned;
    }
    return rule;
  }
  dwarf::RowCursor rows = module.frames().Rows(*found.fde);
  if (found.fde->cie.return_address_register != Cpu::kIp || !SeekRow(rows, found.lookup)) {
    rule.kind = Rule::Kind::kBadCfi;
    return rule;
  }
  const dwarf::Row& row = rows.row();
  rule.kind = row.registers[Cpu::kIp].kind == RuleKind::kUndefined ? Rule::Kind::kOutermost
                                                                   : Rule::Kind::kRow;
  rule.pc_in_register = row.registers[Cpu::kIp].kind == RuleKind::kRegister;
  rule.signal_frame = rule.kind == Rule::Kind::kRow && found.fde->cie.signal_frame;
  rule.cfa = row.cfa;
  for (uint8_t reg = 0; reg < Cpu::kRegisters; ++reg) {
    const RegisterRule& saved = row.registers[reg];
    if (saved.kind != RuleKind::kSameValue) rule.registers.emplace_back(reg, saved);
  }
  return rule;
}

template <class Cpu>
auto FullUnwinder<Cpu>::FindRule(const UnwindMapping& mapping, const State& state) -> const Rule& {
  static const Rule kNoFile;
  if (mapping.module == nullptr) return kNoFile;
  const Svma pc(state.pc() - mapping.bias);
  if (rules_.size() >= kMaxRules) rules_.clear();
  auto [it, fresh] = rules_.try_emplace({mapping.module->serial(), state.exact, pc.value});
  if (fresh) it->second = MakeRule(*mapping.module, pc, state.exact);
  return it->second;
}

template <class Cpu>
std::optional<StackEnd> FullUnwinder<Cpu>::ApplyRow(const UnwindInput& input, const Rule& rule,
                                                    uint64_t bias, State& state) {
  const FrameView<Cpu> view(input, state);
  const auto cfa = view.Cfa(rule.cfa, bias);
  if (!cfa) return view.Failure();
  // A call pushed something: the caller's sp is above. Only what is interrupted right there may
  // have popped its return address already, as vfork does, to keep it in a register.
  const bool may_stay = state.exact && rule.pc_in_register && *cfa == state.sp();
  if (!rule.signal_frame && !may_stay && *cfa <= state.sp()) {
    return *cfa == state.sp() ? StackEnd::kNoAdvance : StackEnd::kBadCfa;
  }
  State caller = state;
  caller.Set(Cpu::kSp, *cfa);
  caller.Forget(Cpu::kIp);
  for (const auto& [reg, saved] : rule.registers) {
    const bool is_popped =
        state.exact && saved.kind == RuleKind::kOffset && reg != Cpu::kIp &&
        static_cast<typename Cpu::Word>(*cfa + static_cast<uint64_t>(saved.offset)) < state.sp();
    if (is_popped) continue;  // see FastUnwinder::LoadFp
    const auto value = view.Caller(saved, *cfa, bias);
    if (value) {
      caller.Set(reg, *value);
    } else {
      caller.Forget(reg);
      const bool is_vital = reg == Cpu::kIp || reg == Cpu::kSp;
      if (is_vital) return view.Failure();
    }
  }
  if (!caller.Has(Cpu::kIp)) return StackEnd::kBadCfi;
  if (caller.pc() == state.pc() && caller.sp() == state.sp()) return StackEnd::kNoAdvance;
  state = caller;
  return std::nullopt;
}

template <class Cpu>
std::optional<StackEnd> FullUnwinder<Cpu>::ApplyTrampoline(const UnwindInput& input,
                                                           const SavedRegisters<Cpu>& layout,
                                                           State& state) {
  State caller = state;
  for (unsigned reg = 0; reg < Cpu::kRegisters; ++reg) {
    const uint64_t at =
        static_cast<typename Cpu::Word>(state.sp() + static_cast<uint64_t>(int64_t{layout[reg]}));
    uint64_t value = 0;
    if (ReadWord<Cpu>(input.stack, at, value)) {
      caller.Set(reg, value);
    } else {
      if (reg == Cpu::kIp || reg == Cpu::kSp) return EndOfUnreadable(input, at);
      caller.Forget(reg);
    }
  }
  if (caller.pc() == state.pc() && caller.sp() == state.sp()) return StackEnd::kNoAdvance;
  state = caller;
  return std::nullopt;
}

template <class Cpu>
void FullUnwinder<Cpu>::MoveTo(const Caller& caller, bool chain_ended, State& state) {
  ++counts_.frame_pointer_steps;
  state.known = 0;  // what else the function saved is not known
  state.Set(Cpu::kIp, caller.pc);
  state.Set(Cpu::kSp, caller.sp);
  if (caller.fp) state.Set(Cpu::kBp, *caller.fp);
  state.exact = false;
  state.chain_ended = chain_ended;
  state.origin = FrameOrigin::kFramePointer;
}

template <class Cpu>
bool FullUnwinder<Cpu>::RescueInnermost(const UnwindInput& input, const State& first,
                                        State& state) {
  if (state.origin != FrameOrigin::kCfi) return false;
  std::optional<uint64_t> fp;
  if (first.Has(Cpu::kBp)) fp = first.values[Cpu::kBp];
  const auto caller = FollowInnermostByScan<Cpu>(input, first.pc(), first.sp(), fp);
  if (!caller) return false;
  MoveTo(*caller, /*chain_ended=*/false, state);
  return true;
}

template <class Cpu>
std::optional<StackEnd> FullUnwinder<Cpu>::Fallback(const UnwindInput& input, const Rule& rule,
                                                    State& state) {
  std::optional<uint64_t> fp;
  if (state.Has(Cpu::kBp)) fp = state.values[Cpu::kBp];
  std::optional<Caller> caller;
  bool chain_ended = false;
  if (rule.kind == Rule::Kind::kScanned) {
    caller = FollowScanned<Cpu>(input, rule.scanned, state.sp(), fp);
  }
  if (!caller) {
    if (state.chain_ended) return StackEnd::kRoot;
    if (fp) caller = FollowFramePointer<Cpu>(input, state.sp(), *fp);
    if (!caller) return StackEnd::kNoCfi;
    chain_ended = caller->fp == 0;
  }
  MoveTo(*caller, chain_ended, state);
  return std::nullopt;
}

// Moves `state` to the caller, or says how the stack ends here.
template <class Cpu>
std::optional<StackEnd> FullUnwinder<Cpu>::Apply(const UnwindInput& input, const Rule& rule,
                                                 uint64_t bias, State& state) {
  std::optional<StackEnd> end;
  switch (rule.kind) {
    case Rule::Kind::kOutermost:
      return StackEnd::kRoot;
    case Rule::Kind::kBadCfi:
      return StackEnd::kBadCfi;
    case Rule::Kind::kScanned:
    case Rule::Kind::kNoCfi:
      return Fallback(input, rule, state);
    case Rule::Kind::kRow:
      end = ApplyRow(input, rule, bias, state);
      break;
    case Rule::Kind::kTrampoline:
      end = ApplyTrampoline(input, *rule.trampoline, state);
      break;
  }
  state.origin = FrameOrigin::kCfi;
  state.exact = rule.signal_frame;
  state.chain_ended = false;
  return end;
}

template <class Cpu>
auto FullUnwinder<Cpu>::FollowDetour(const UnwindInput& input, State& state,
                                     std::vector<Frame>& out) -> std::expected<Detoured, StackEnd> {
  const auto advance = [&](uint64_t address,
                           uint64_t sp) -> std::pair<std::optional<uint64_t>, StackEnd> {
    State caller = state;
    caller.Set(Cpu::kIp, address);
    caller.Set(Cpu::kSp, sp);
    caller.exact = false;
    const UnwindMapping* mapping = input.maps->FindCode(address, /*exact=*/false);
    if (mapping == nullptr) return {std::nullopt, StackEnd::kNoMapping};
    const auto end = Apply(input, FindRule(*mapping, caller), mapping->bias, caller);
    if (end) return {std::nullopt, *end};
    return {caller.pc(), StackEnd::kRoot};
  };
  const DetourStep step = StepDetour(input, state.pc(), state.sp(), state.exact, counts_, advance);
  if (step.kind == DetourStep::Kind::kNone) return Detoured::kNo;
  if (step.frame != 0) {
    out.push_back({AddressOf(step, out.empty()), state.origin, /*signal=*/false});
  }
  if (step.kind == DetourStep::Kind::kEnd) return std::unexpected(StackEnd::kTraced);
  state.Set(Cpu::kIp, step.pc);
  state.Set(Cpu::kSp, step.sp);
  state.exact = step.kind == DetourStep::Kind::kMoved;
  if (step.kind != DetourStep::Kind::kMoved) state.origin = FrameOrigin::kCfi;
  state.chain_ended = false;
  return step.frame != 0 ? Detoured::kFrame : Detoured::kMoved;
}

template <class Cpu>
StackEnd FullUnwinder<Cpu>::Unwind(const UnwindInput& input, std::vector<Frame>& out) {
  State state;
  for (unsigned reg = 0; reg < Cpu::kRegisters; ++reg) {
    const unsigned perf_reg = Cpu::kPerfOfDwarf[reg];
    if (input.registers.Has(perf_reg)) state.Set(reg, input.registers.values[perf_reg]);
  }
  const State first = state;
  for (size_t n = 0;; ++n) {
    const uint64_t pc = state.pc();
    if (pc == 0) return StackEnd::kRoot;
    if (pc == static_cast<typename Cpu::Word>(-1)) return StackEnd::kNoMapping;
    if constexpr (std::is_same_v<Cpu, Cpu64>) {
      if (input.detours != nullptr && input.detours->Covers(pc)) {
        if (n == input.max_frames) return StackEnd::kLimit;
        const auto detoured = FollowDetour(input, state, out);
        if (!detoured) return detoured.error();
        if (*detoured != Detoured::kNo) {
          n -= *detoured == Detoured::kMoved ? 1 : 0;
          continue;
        }
      }
    }
    const UnwindMapping* mapping = input.maps->FindCode(pc, state.exact);
    if (mapping == nullptr && n != 0) {
      if (n != 1 || !RescueInnermost(input, first, state)) return StackEnd::kNoMapping;
      n = 0;
      continue;
    }
    if (n == input.max_frames) return StackEnd::kLimit;
    static const UnwindMapping kNowhere;
    const Rule& rule = FindRule(mapping == nullptr ? kNowhere : *mapping, state);
    const CodeAddressKind kind =
        state.exact ? CodeAddressKind::kInstructionPointer : CodeAddressKind::kReturnAddress;
    out.push_back({{Avma(pc), kind}, state.origin, rule.signal_frame});
    const uint64_t bias = mapping == nullptr ? 0 : mapping->bias;
    if (const auto end = Apply(input, rule, bias, state)) {
      return mapping == nullptr && *end == StackEnd::kNoCfi ? StackEnd::kNoMapping : *end;
    }
  }
}

template class FullUnwinder<Cpu64>;
template class FullUnwinder<Cpu32>;

}  // namespace stackreel::unwind::x86_64
