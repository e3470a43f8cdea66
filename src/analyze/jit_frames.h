// Call-frame information of JIT code.
#pragma once

#include <memory>

#include "session/jit_dump.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

// What the unwinding-info records of a jitdump say, as one module whose svmas are the actual
// addresses. Of code that was replaced at its address only the last says something; how a JIT
// compiler's prologues look hardly changes. Null if no code has any. Needs nothing of `dump` later.
std::shared_ptr<const unwind::UnwindModule> MakeJitFrames(const session::JitDump& dump);

}  // namespace stackreel::analyze
