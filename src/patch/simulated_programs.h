// Test code: programs for the simulated machine, one for each kind of site. Each calls f() in a
// loop; where a thread has a handler, that calls f() too.
#pragma once

#include <string_view>

#include "patch/simulated_machine.h"

namespace stackreel::patch {

struct SimThreads {
  int plain = 2;        // threads that are not interrupted
  int interrupted = 0;  // threads that are, anywhere, by a handler that calls f()
};

// Names: nop, nop-call, nops, call, prologue, relocated, syscall, padding, padding-2, xray, trap,
// own-trap, two (a prologue and a NOP).
[[nodiscard]] SimProgram MakeSimProgram(std::string_view name, SimThreads threads);

}  // namespace stackreel::patch
