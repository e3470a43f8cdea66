// Call-frame information of JIT code.
#pragma once

#include <cstddef>
#include <memory>

#include "base/counters.h"
#include "session/jit_dump.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

// What the unwinding-info records of a jitdump say, as one module whose svmas are the actual
// addresses. Of code that was replaced at its address only the last says something; how a JIT
// compiler's prologues look hardly changes. Null if no code has any. Needs nothing of `dump` later.
// `dump_size`: of the dump in bytes; no more than a few times as many are read or made, since code
// that is moved takes what it has along. "analyze.jit_frames_left_out" counts code beyond that.
std::shared_ptr<const unwind::UnwindModule> MakeJitFrames(const session::JitDump& dump,
                                                          size_t dump_size, Counters& counters);

}  // namespace stackreel::analyze
