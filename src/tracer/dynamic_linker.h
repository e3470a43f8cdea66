// The dynamic linker of a target, as it shows itself to debuggers.
#pragma once

#include <optional>
#include <span>

#include "base/address.h"
#include "tracer/target.h"
#include "tracer/target_modules.h"

namespace stackreel::tracer {

// <link.h>, struct r_debug; of glibc and musl alike.
struct DynamicLinker {
  Avma state;  // the structure itself
  Avma
      function;  // does nothing; is called when what is loaded has changed, or is about to (r_brk):
                 // before the constructors of what was loaded, behind the destructors of what goes
};
// Nothing: the program is static, or its dynamic linker has not begun yet.
std::optional<DynamicLinker> FindDynamicLinker(const Target& target,
                                               std::span<const TargetModule> modules);

}  // namespace stackreel::tracer
