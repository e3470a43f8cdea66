// Functions that tracing itself needs patched, whatever else is: behind them return addresses must
// be true, or a thread ends, or another program begins, or what tracing does could be fatal.
#pragma once

#include <cstddef>
#include <optional>

#include "agent/stub.h"
#include "tracer/target_modules.h"

namespace stackreel::tracer {

// At most so many are in one module, the one that the dynamic linker calls among them.
inline constexpr size_t kMostNeeded = 23;

// Whether a module can have some, by the name of its file: others need not be read for it.
[[nodiscard]] bool MayHaveNeeded(const TargetModule& module);

// What is done that only some traces do.
struct NeededFor {
  bool traps = false;
};

// What is to be called there; nothing if the function is none of them, by any of its names.
[[nodiscard]] std::optional<agent::StubKind> StubNeededAt(const ModuleFunction& function,
                                                          NeededFor what = {});

}  // namespace stackreel::tracer
