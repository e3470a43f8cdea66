// What this machine allows a tracer of functions to do.
#pragma once

#include <vector>

#include "cli/doctor.h"

namespace stackreel::cli {

void AppendTracingChecks(const MachineFacts& facts, std::vector<Check>& checks);

}  // namespace stackreel::cli
