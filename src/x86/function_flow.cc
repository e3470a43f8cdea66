#include "x86/function_flow.h"

#include <algorithm>

#include "x86/instruction.h"
#include "x86/jump_table.h"

namespace stackreel::x86 {

std::optional<Svma> FunctionFlow::EnteredInside(Svma begin, Svma end) const {
  std::optional<Svma> first;
  const auto note = [&](Svma target) {
    if (target > begin && target < end && (!first || target < *first)) first = target;
  };
  for (const Branch& branch : branches) {
    const Svma from = start + branch.from;
    if (branch.is_indirect || from < begin || from >= end) note(branch.target);
  }
  for (const Svma target : taken) note(target);
  return first;
}

FunctionFlow ReadFunctionFlow(Svma start, ByteView code, const LoadedBytes& loaded) {
  FunctionFlow flow;
  flow.start = start;
  std::vector<uint32_t> indirect_jumps;
  const size_t size = std::min<size_t>(code.size(), UINT32_MAX);
  size_t at = 0;
  while (at < size) {
    const std::optional<Instruction> instruction = Decode(code.subspan(at));
    if (!instruction) break;
    const auto offset = static_cast<uint32_t>(at);
    const uint64_t svma = start.value + at;
    flow.instructions.push_back(offset);
    if (instruction->branch.size != 0) {
      flow.branches.push_back({offset, Svma(TargetOf(*instruction, instruction->branch, svma))});
    }
    if (instruction->is_lea && instruction->memory.size != 0) {
      const Svma target(TargetOf(*instruction, instruction->memory, svma));
      if (target > start && target - start < size) flow.taken.push_back(target);
    }
    if (instruction->flow == Flow::kIndirectJump && !instruction->is_far) {
      indirect_jumps.push_back(offset);
    }
    at += instruction->length;
  }
  flow.decoded = static_cast<uint32_t>(at);
  ResolveIndirectJumps(code, indirect_jumps, loaded, flow);
  return flow;
}

}  // namespace stackreel::x86
