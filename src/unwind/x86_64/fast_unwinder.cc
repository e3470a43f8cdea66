#include "unwind/x86_64/fast_unwinder.h"

#include <tuple>
#include <type_traits>
#include <utility>

#include "unwind/find_cfi.h"
#include "unwind/stack_words.h"
#include "unwind/x86_64/detour_steps.h"
#include "unwind/x86_64/fallback.h"
#include "unwind/x86_64/registers.h"
#include "unwind/x86_64/trampoline.h"

namespace stackreel::unwind::x86_64 {
namespace {

// The rule at a pc by call-frame information, or what stands for it where there is none.
template <class Cpu>
FastRule MakeRule(const UnwindMapping& mapping, uint64_t pc, bool exact, Counts& counts) {
  if (mapping.module == nullptr) return Only(FastKind::kNoCfi);
  const UnwindModule& module = *mapping.module;
  const Svma svma(pc - mapping.bias);
  const FoundCfi found = FindCfi(module, svma, exact);
  if (found.outermost) return Only(FastKind::kOutermost);
  if (found.try_trampoline) {
    const auto* layout = FindTrampoline<Cpu>(module, svma, exact);
    if (layout != nullptr) return TrampolineRule<Cpu>(*layout);
  }
  if (!found.fde) {
    const auto scanned = ScanCode(module, svma, Cpu::kWordSize);
    return scanned ? ScannedRule(*scanned) : Only(FastKind::kNoCfi);
  }
  dwarf::RowCursor rows = module.frames().Rows(*found.fde);
  if (!SeekRow(rows, found.lookup)) {
    ++counts.bad_rules;
    return Only(FastKind::kBadCfi);
  }
  return MakeFastRule<Cpu>(rows.row(), found.fde->cie);
}

}  // namespace

template <class Cpu>
const FastRule& FastUnwinder<Cpu>::FindRule(const State& state) {
  return rules_.Find(state.pc, state.exact, counts_, [&](const UnwindMapping* mapping) {
    if (mapping == nullptr) return Only(FastKind::kNoMapping);
    return MakeRule<Cpu>(*mapping, state.pc, state.exact, counts_);
  });
}

// A CFA is kept at `at`, which is not on the stack. The full path can look in files too.
template <class Cpu>
StackEnd FastUnwinder<Cpu>::OffTheStack(const UnwindInput& input, uint64_t at) {
  needs_full_ = input.maps->Find(at) != nullptr;
  return EndOfUnreadable(input, at);
}

// Compilers do not say when an epilogue has popped a register, so its slot may be given although it
// lies below sp already. The register itself then holds the caller's value.
template <class Cpu>
void FastUnwinder<Cpu>::LoadFp(const UnwindInput& input, const FastRule& rule, uint64_t cfa,
                               State& state) {
  if (rule.fp == FpKind::kUnknown || (rule.fp == FpKind::kAtFp && !state.fp_known)) {
    state.fp_known = false;
    return;
  }
  const uint64_t base = rule.fp == FpKind::kAtCfa ? cfa : state.fp;
  const uint64_t at =
      static_cast<typename Cpu::Word>(base + static_cast<uint64_t>(int64_t{rule.fp_offset}));
  if (state.exact && rule.fp == FpKind::kAtCfa && at < state.sp) return;
  state.fp_known = ReadWord<Cpu>(input.stack, at, state.fp);
  step_.reads_fp = true;
  step_.fp_at = at;
  step_.is_left_plainly &= state.fp_known;
}

// Moves `state` to the caller, or says how the stack ends here.
template <class Cpu>
std::optional<StackEnd> FastUnwinder<Cpu>::Apply(const UnwindInput& input, const FastRule& rule,
                                                 State& state) {
  using Word = typename Cpu::Word;
  const auto offset = static_cast<uint64_t>(int64_t{rule.cfa_offset});
  uint64_t cfa = 0;
  switch (rule.kind) {
    case FastKind::kCfaFromSp:
      cfa = state.sp + offset;
      break;
    case FastKind::kPlt:
      cfa = state.sp + Cpu::kWordSize +
            ((state.pc & 15) >= static_cast<uint64_t>(rule.extra) ? Cpu::kWordSize : 0);
      break;
    case FastKind::kCfaFromFp:
      if (!state.fp_known) return StackEnd::kBadCfi;
      cfa = state.fp + offset;
      break;
    case FastKind::kCfaAtFp:
      if (!state.fp_known) return StackEnd::kBadCfi;
      [[fallthrough]];
    case FastKind::kCfaAtSp: {
      const uint64_t base = rule.kind == FastKind::kCfaAtSp ? state.sp : state.fp;
      const uint64_t at = static_cast<Word>(base + offset);
      if (!ReadWord<Cpu>(input.stack, at, cfa)) return OffTheStack(input, at);
      cfa += static_cast<uint64_t>(rule.extra);
      break;
    }
    case FastKind::kSignal:
      return ApplySignal(input, rule, state);
    case FastKind::kOutermost:
      return StackEnd::kRoot;
    case FastKind::kScanned:
    case FastKind::kNoCfi:
    case FastKind::kNoMapping:
      return Fallback(input, rule, state);
    case FastKind::kBadCfi:
    case FastKind::kFullRegisters:
      return StackEnd::kBadCfi;
  }
  cfa = static_cast<Word>(cfa);
  // A call pushed something: the caller's sp is above.
  if (cfa <= state.sp) return cfa == state.sp ? StackEnd::kNoAdvance : StackEnd::kBadCfa;
  const uint64_t ra_at = static_cast<Word>(cfa + static_cast<uint64_t>(int64_t{rule.ra_offset}));
  uint64_t ra = 0;
  if (!ReadWord<Cpu>(input.stack, ra_at, ra)) return EndOfUnreadable(input, ra_at);
  step_.ra_at = ra_at;
  step_.is_left_plainly = rule.kind != FastKind::kCfaAtSp && rule.kind != FastKind::kCfaAtFp;
  if (rule.fp != FpKind::kSame) LoadFp(input, rule, cfa, state);
  state.sp = cfa;
  state.pc = ra;
  state.exact = false;
  state.chain_ended = false;
  state.origin = FrameOrigin::kCfi;
  return std::nullopt;
}

template <class Cpu>
std::optional<StackEnd> FastUnwinder<Cpu>::ApplySignal(const UnwindInput& input,
                                                       const FastRule& rule, State& state) {
  const auto at = [&](int32_t offset) -> uint64_t {
    return static_cast<typename Cpu::Word>(state.sp + static_cast<uint64_t>(int64_t{offset}));
  };
  State next{};
  if (!ReadWord<Cpu>(input.stack, at(rule.cfa_offset), next.sp)) {
    return OffTheStack(input, at(rule.cfa_offset));
  }
  if (!ReadWord<Cpu>(input.stack, at(rule.ra_offset), next.pc)) {
    return EndOfUnreadable(input, at(rule.ra_offset));
  }
  next.fp_known = ReadWord<Cpu>(input.stack, at(rule.fp_offset), next.fp);
  next.exact = true;
  next.origin = FrameOrigin::kCfi;
  if (next.pc == state.pc && next.sp == state.sp) return StackEnd::kNoAdvance;
  state = next;
  return std::nullopt;
}

template <class Cpu>
std::optional<StackEnd> FastUnwinder<Cpu>::Fallback(const UnwindInput& input, const FastRule& rule,
                                                    State& state) {
  std::optional<uint64_t> fp;
  if (state.fp_known) fp = state.fp;
  std::optional<Caller> caller;
  bool chain_ended = false;
  if (rule.kind == FastKind::kScanned) {
    caller = FollowScanned<Cpu>(input, ScannedFrameOf(rule), state.sp, fp);
  }
  if (!caller) {
    if (state.chain_ended) return StackEnd::kRoot;
    if (fp) caller = FollowFramePointer<Cpu>(input, state.sp, *fp);
    if (!caller) {
      return rule.kind == FastKind::kNoMapping ? StackEnd::kNoMapping : StackEnd::kNoCfi;
    }
    chain_ended = caller->fp == 0;
  }
  MoveTo(*caller, chain_ended, state);
  return std::nullopt;
}

template <class Cpu>
bool FastUnwinder<Cpu>::RescueInnermost(const UnwindInput& input, const State& first,
                                        State& state) {
  if (state.origin != FrameOrigin::kCfi) return false;
  std::optional<uint64_t> fp;
  if (first.fp_known) fp = first.fp;
  const auto caller = FollowInnermostByScan<Cpu>(input, first.pc, first.sp, fp);
  if (!caller) return false;
  MoveTo(*caller, /*chain_ended=*/false, state);
  return true;
}

template <class Cpu>
void FastUnwinder<Cpu>::MoveTo(const Caller& caller, bool chain_ended, State& state) {
  ++counts_.frame_pointer_steps;
  state.pc = caller.pc;
  state.sp = caller.sp;
  state.fp = caller.fp.value_or(0);
  state.fp_known = caller.fp.has_value();
  state.exact = false;
  state.chain_ended = chain_ended;
  state.origin = FrameOrigin::kFramePointer;
}

template <class Cpu>
auto FastUnwinder<Cpu>::FollowDetour(const UnwindInput& input, State& state,
                                     std::vector<Frame>& out) -> std::expected<Detoured, StackEnd> {
  const auto advance = [&](uint64_t address,
                           uint64_t sp) -> std::pair<std::optional<uint64_t>, StackEnd> {
    State caller = state;
    caller.pc = address;
    caller.sp = sp;
    caller.exact = false;
    caller.origin = FrameOrigin::kCfi;
    const FastRule rule = FindRule(caller);
    // What needs more is not looked into.
    if (rule.kind == FastKind::kFullRegisters) return {std::nullopt, StackEnd::kDumpExhausted};
    const auto end = Apply(input, rule, caller);
    needs_full_ = false;
    if (end) return {std::nullopt, *end};
    return {caller.pc, StackEnd::kRoot};
  };
  const DetourStep step = StepDetour(input, state.pc, state.sp, state.exact, counts_, advance);
  if (step.kind == DetourStep::Kind::kNone) return Detoured::kNo;
  if (step.frame != 0) {
    out.push_back({AddressOf(step, out.empty()), state.origin, /*signal=*/false});
  }
  if (step.kind == DetourStep::Kind::kEnd) return std::unexpected(StackEnd::kTraced);
  state.pc = step.pc;
  state.sp = step.sp;
  state.exact = step.kind == DetourStep::Kind::kMoved;
  if (step.kind != DetourStep::Kind::kMoved) state.origin = FrameOrigin::kCfi;
  state.chain_ended = false;
  return step.frame != 0 ? Detoured::kFrame : Detoured::kMoved;
}

template <class Cpu>
LastStack& FastUnwinder<Cpu>::LastAt(uint64_t sp) {
  static_assert(std::tuple_size_v<decltype(last_stacks_)> == 16);
  constexpr unsigned kStretch = 20;  // bits: stacks are apart by more, and mostly smaller
  return last_stacks_[((sp >> kStretch) * 0x9e3779b97f4a7c15) >> 60];
}

template <class Cpu>
size_t FastUnwinder<Cpu>::FollowLast(const UnwindInput& input, size_t most, State& state,
                                     std::vector<Frame>& out) {
  LastStack::Step at;
  at.pc = state.pc;
  at.sp = state.sp;
  at.fp = state.fp;
  at.fp_known = state.fp_known;
  const size_t followed = last_->Follow<Cpu>(input.stack, most, &at, out);
  if (followed == 0) return 0;
  state.pc = at.pc;
  state.sp = at.sp;
  state.fp = at.fp;
  state.fp_known = at.fp_known;
  return followed;
}

template <class Cpu>
std::optional<StackEnd> FastUnwinder<Cpu>::UnwindFrom(const UnwindInput& input, State& state,
                                                      std::vector<Frame>& out) {
  const State first = state;
  for (size_t n = 0;; ++n) {
    const bool is_plain = state.origin == FrameOrigin::kCfi && !state.exact && !state.chain_ended;
    if (is_plain) n += FollowLast(input, input.max_frames - n, state, out);
    if constexpr (std::is_same_v<Cpu, Cpu64>) {
      if (input.detours != nullptr && input.detours->Covers(state.pc)) {
        if (n == input.max_frames) return StackEnd::kLimit;
        const auto detoured = FollowDetour(input, state, out);
        step_ = {.pc = state.pc, .sp = state.sp, .fp = state.fp, .fp_known = state.fp_known};
        if (!detoured) return detoured.error();
        if (*detoured != Detoured::kNo) {
          n -= *detoured == Detoured::kMoved ? 1 : 0;
          continue;
        }
      }
    }
    step_ = {.pc = state.pc,
             .sp = state.sp,
             .fp = state.fp,
             .fp_known = state.fp_known,
             .is_plain = is_plain};
    if (state.pc == 0) return StackEnd::kRoot;
    if (state.pc == static_cast<typename Cpu::Word>(-1)) return StackEnd::kNoMapping;
    const FastRule& rule = FindRule(state);
    if (rule.kind == FastKind::kNoMapping && n != 0) {
      if (n != 1 || !RescueInnermost(input, first, state)) return StackEnd::kNoMapping;
      n = 0;
      continue;
    }
    if (rule.kind == FastKind::kFullRegisters) return std::nullopt;
    if (n == input.max_frames) return StackEnd::kLimit;
    const CodeAddressKind kind =
        state.exact ? CodeAddressKind::kInstructionPointer : CodeAddressKind::kReturnAddress;
    out.push_back({{Avma(state.pc), kind}, state.origin, rule.kind == FastKind::kSignal});
    if (const auto end = Apply(input, rule, state)) {
      if (needs_full_) return std::nullopt;
      return end;
    }
    last_->Add(step_);
  }
}

template <class Cpu>
std::optional<StackEnd> FastUnwinder<Cpu>::Unwind(const UnwindInput& input,
                                                  std::vector<Frame>& out) {
  rules_.Begin(*input.maps);
  needs_full_ = false;
  const Registers& registers = input.registers;
  State state{};
  state.pc = static_cast<typename Cpu::Word>(registers.values[kPerfIp]);
  state.sp = static_cast<typename Cpu::Word>(registers.values[kPerfSp]);
  state.fp = static_cast<typename Cpu::Word>(registers.values[kPerfBp]);
  state.fp_known = registers.Has(kPerfBp);
  state.exact = true;
  state.origin = FrameOrigin::kSampled;
  last_ = &LastAt(state.sp);
  last_->Begin(input.maps->version);
  const std::optional<StackEnd> end = UnwindFrom(input, state, out);
  step_.is_left_plainly = false;
  if (end) last_->End(step_);
  return end;
}

template <class Cpu>
void FastUnwinder<Cpu>::PrefetchWhereLastRead(const StackView& stack) {
  const ByteView bytes = stack.bytes();
  LastAt(stack.start().value).ForEachRead([&](uint64_t at) {
    const uint64_t offset = at - stack.start().value;
    if (offset < bytes.size()) __builtin_prefetch(bytes.data() + offset);
  });
}

template class FastUnwinder<Cpu64>;
template class FastUnwinder<Cpu32>;

}  // namespace stackreel::unwind::x86_64
