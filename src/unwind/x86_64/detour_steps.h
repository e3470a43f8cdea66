// Going on where a tracer has put something between a function and its caller.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/counts.h"
#include "unwind/stack_words.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind::x86_64 {

// How well a return address goes with what leads on from it.
enum class Fit : uint8_t {
  kNone,      // it leads nowhere
  kPossible,  // nothing speaks against it
  kCall,      // to behind a call by pointer, or of a function that tail-calls the one it is in
  kExact,     // to behind a call of the very function that the address is in
};

// Whether the code at `candidate` (a return address) is of a function that was called from
// `caller`, the pc that its call-frame information leads to.
Fit FitOf(const UnwindInput& input, uint64_t candidate, uint64_t caller);

// The true return address of a call at whose `place` a stub's return point stands. advance(address)
// gives the pc that a frame at that return address is called from, or how a stack ends there.
template <class Advance>
std::optional<uint64_t> TrueReturn(const UnwindInput& input, uint64_t place, uint64_t return_point,
                                   Counts& counts, Advance advance) {
  constexpr int kMostTailCalls = 64;
  Detours::Candidates found;
  uint64_t ticks = input.ticks;
  bool inferred = false;
  for (int i = 0; i < kMostTailCalls; ++i) {
    input.detours->FindReturns(place, return_point, ticks, found);
    uint64_t address = 0;
    if (found.sure) {
      address = found.sure->return_address;
      ticks = found.sure->start - 1;  // it was tail-called by an older one
    } else {
      inferred = true;
      Fit best = Fit::kNone;
      for (const uint64_t candidate : found.likely) {
        Fit fit = Fit::kPossible;
        // What goes on in a stub is not the process's code, which alone tells.
        if (input.detours->Find(candidate) == nullptr) {
          const auto [caller, end] = advance(candidate);
          if (caller) {
            fit = FitOf(input, candidate, *caller);
          } else if (end == StackEnd::kRoot) {
            fit = Fit::kCall;
          } else if (end != StackEnd::kDumpExhausted) {
            fit = Fit::kNone;
          }
        }
        if (fit <= best) continue;
        best = fit;
        address = candidate;
        if (fit == Fit::kExact) break;
      }
      if (best == Fit::kNone) break;
    }
    if (input.detours->ByReturnPoint(address) == nullptr) {
      ++(inferred ? counts.inferred_returns : counts.traced_returns);
      return address;
    }
    return_point = address;
  }
  return std::nullopt;
}

// Where a thread in the agent goes back to: the first word from `sp` on that leads to a stub behind
// one of its calls. `sp` is what the stack pointer is there then.
struct AgentCaller {
  uint64_t pc = 0;
  uint64_t sp = 0;
};
std::optional<AgentCaller> FindAgentCaller(const UnwindInput& input, uint64_t sp);

// How a frame whose pc a detour covers is left, or what it is really.
struct DetourStep {
  enum class Kind : uint8_t {
    kNone,    // the pc is the function's, as far as this knows
    kMoved,   // it is at `pc`, with `sp`: goes on there
    kCaller,  // it was called from `pc`; `frame` stands for it, unless that is 0
    kAgent,   // a frame of the agent, called from `pc`
    kEnd,     // the way on is not known; `frame` as above
  };
  Kind kind = Kind::kNone;
  uint64_t pc = 0, sp = 0;
  uint64_t frame = 0;
};
// What stands for the frame in a stack. Whoever reads that looks for callers in front of their
// addresses, and the function begins here.
inline CodeAddress AddressOf(const DetourStep& step, bool innermost) {
  if (innermost) return {Avma(step.frame), CodeAddressKind::kInstructionPointer};
  return {Avma(step.frame + 1), CodeAddressKind::kReturnAddress};
}

// `pc` is in a stub or the agent. As of TrueReturn, but advance(address, sp).
template <class Advance>
DetourStep StepDetour(const UnwindInput& input, uint64_t pc, uint64_t sp, bool exact,
                      Counts& counts, Advance advance) {
  using Kind = DetourStep::Kind;
  const Detours& detours = *input.detours;
  if (detours.IsInAgent(pc)) {
    const auto caller = FindAgentCaller(input, sp);
    if (!caller) return {.kind = Kind::kEnd, .frame = pc};
    return {.kind = Kind::kAgent, .pc = caller->pc, .sp = caller->sp, .frame = pc};
  }
  const Detour* detour = detours.Find(pc);
  const DetourRow* row = detour == nullptr ? nullptr : detour->RowAt(pc);
  if (row == nullptr) return {};
  const uint64_t at = sp + static_cast<uint64_t>(int64_t{row->sp});
  if (row->kind == DetourRow::Kind::kCode) return {.kind = Kind::kMoved, .pc = row->code, .sp = at};
  DetourStep step = {.kind = Kind::kCaller, .sp = at + Cpu64::kWordSize};
  // What is called from the stub, but for the agent, is the function, whose frame that was.
  const bool calls_agent = row->after_call && pc - detour->begin == row->offset;
  if (exact || calls_agent) step.frame = detour->function;
  // What lies below the stack pointer is not dumped.
  uint64_t word = detour->return_point;
  if (at >= sp && !input.stack.Read64(at, word)) {
    step.kind = Kind::kEnd;
    return step;
  }
  if (detours.ByReturnPoint(word) == nullptr) {
    step.pc = word;
    return step;
  }
  const auto address = TrueReturn(input, at, word, counts, [&](uint64_t candidate) {
    return advance(candidate, at + Cpu64::kWordSize);
  });
  if (!address) {
    step.kind = Kind::kEnd;
    return step;
  }
  step.pc = *address;
  return step;
}

}  // namespace stackreel::unwind::x86_64
