#include "unwind/x86_64/detour_steps.h"

#include <algorithm>

#include "unwind/code_window.h"
#include "unwind/x86_64/fallback.h"

namespace stackreel::unwind::x86_64 {
namespace {

// The frames of the agent, with the values that it reads.
constexpr uint64_t kMostAgentStack = 8192;

// A function by its call-frame information.
struct Function {
  const UnwindMapping* mapping = nullptr;
  uint64_t start = 0, end = 0;
};
std::optional<Function> FunctionAt(const UnwindInput& input, uint64_t avma) {
  const UnwindMapping* mapping = input.maps->FindCode(avma, /*exact=*/true);
  if (mapping == nullptr || mapping->module == nullptr) return std::nullopt;
  const auto fde = mapping->module->frames().FindFde(Svma(avma - mapping->bias));
  if (!fde) return std::nullopt;
  return Function{mapping, fde->start.value + mapping->bias, fde->end.value + mapping->bias};
}

// Whether a `jmp rel32` of one leads to the beginning of the other.
bool TailCalls(const Function& from, const Function& to) {
  constexpr size_t kJumpLength = 5;
  constexpr uint8_t kJump = 0xe9;
  const ByteView code = from.mapping->module->BytesAt(Svma(from.start - from.mapping->bias));
  const size_t size = std::min<uint64_t>(code.size(), from.end - from.start);
  for (size_t at = 0; at + kJumpLength <= size; ++at) {
    if (code[at] != kJump) continue;
    const auto distance =
        static_cast<int32_t>(LoadUnaligned<uint32_t>(&code[at + 1], Endian::kLittle));
    if (from.start + at + kJumpLength + static_cast<uint64_t>(int64_t{distance}) == to.start) {
      return true;
    }
  }
  return false;
}

// The candidate's function, if `called` was called.
Fit FitOfCall(const UnwindInput& input, uint64_t candidate, uint64_t called) {
  const auto function = FunctionAt(input, candidate - 1);
  const auto callee = FunctionAt(input, called);
  if (!function || !callee) return Fit::kPossible;
  if (function->start == callee->start && function->mapping == callee->mapping) {
    return Fit::kExact;
  }
  return TailCalls(*callee, *function) ? Fit::kCall : Fit::kNone;
}

// The target of a `call rel32` that ends at `avma`.
std::optional<uint64_t> CalledDirectly(const UnwindInput& input, uint64_t avma) {
  constexpr size_t kCallLength = 5;
  constexpr uint8_t kCall = 0xe8;
  const ByteView code = CodeBefore(*input.maps, avma, kCallLength);
  if (code.size() < kCallLength || code[0] != kCall) return std::nullopt;
  const auto distance = static_cast<int32_t>(LoadUnaligned<uint32_t>(&code[1], Endian::kLittle));
  return avma + static_cast<uint64_t>(int64_t{distance});
}

}  // namespace

Fit FitOf(const UnwindInput& input, uint64_t candidate, uint64_t caller) {
  if (const Detour* detour = input.detours->ByReturnPoint(caller)) {
    return FitOfCall(input, candidate, detour->function);
  }
  if (caller == 0) return Fit::kCall;
  if (!IsReturnAddress(*input.maps, caller)) return Fit::kNone;
  const auto target = CalledDirectly(input, caller);
  if (!target) return Fit::kCall;
  // What is not the beginning of a function leads to one by a table (the PLT).
  const auto callee = FunctionAt(input, *target);
  if (!callee || callee->start != *target) return Fit::kPossible;
  return FitOfCall(input, candidate, *target);
}

std::optional<AgentCaller> FindAgentCaller(const UnwindInput& input, uint64_t sp) {
  for (uint64_t at = sp; at < sp + kMostAgentStack; at += Cpu64::kWordSize) {
    uint64_t word = 0;
    if (!input.stack.Read64(at, word)) return std::nullopt;
    const Detour* detour = input.detours->Find(word);
    const DetourRow* row = detour == nullptr ? nullptr : detour->RowAt(word);
    if (row == nullptr || !row->after_call || word - detour->begin != row->offset) continue;
    const AgentCaller caller = {.pc = word, .sp = at + Cpu64::kWordSize};
    // Behind what an earlier call has left there, something else stands.
    uint64_t behind = 0;
    const bool pushes = row->kind == DetourRow::Kind::kPlace && row->sp != 0;
    const bool is_live = input.stack.Read64(caller.sp, behind) &&
                         (!pushes || static_cast<uint32_t>(behind) == detour->number);
    if (is_live) return caller;
  }
  return std::nullopt;
}

}  // namespace stackreel::unwind::x86_64
