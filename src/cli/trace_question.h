// What commands ask a running trace, from another process.
#pragma once

#include <cstdint>

#include "cli/command.h"
#include "tracedata/control_message.h"

namespace stackreel::cli {

// Asks the trace of a process; what it could not do is an error here, and so is that there is none.
Result<tracedata::ControlAnswer> AskTraceOf(uint32_t pid, const tracedata::ControlRequest& request);

// -p, --pid: of a process that is traced.
void AddPidOption(CLI::App& app, uint32_t& pid);

}  // namespace stackreel::cli
