// Whether tracing would have a target killed by its own seccomp filters.
#pragma once

#include "base/error.h"
#include "tracer/target.h"

namespace stackreel::tracer {

// Of a target that is held. Refused (kUnsupported): a filter of one of its threads would end it, or
// send it a signal, at a system call that the tracer has it make or its agent makes. kPermission:
// it has filters that this process has not, and may not look at; that is not refused with `force`.
Status RefuseHarmfulFilters(Target& target, bool force);

}  // namespace stackreel::tracer
