// Finds the tables that a function's indirect jumps choose from. Internal to ReadFunctionFlow.
#pragma once

#include "x86/function_flow.h"

namespace stackreel::x86 {

// Resolves the indirect jumps at `jumps` (offsets in `code`): fills flow's tables, unresolved and
// the branches that the tables stand for. flow.instructions is complete.
void ResolveIndirectJumps(ByteView code, std::span<const uint32_t> jumps, const LoadedBytes& loaded,
                          FunctionFlow& flow);

}  // namespace stackreel::x86
