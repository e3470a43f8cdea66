// Branch stacks, as perf script prints them.
#pragma once

#include <functional>
#include <string>

#include "perfdata/sample.h"

namespace stackreel::views {

// Appends the text of one end of a branch: "0x1234", "main+0x5", with what stands behind it.
using AppendPlace = std::function<void(uint64_t address, std::string& out)>;

// Appends "FROM/TO/P/-/-/12/COND " for each branch, the youngest first, with `lead` before each.
// Flags: M mispredicted or P predicted, X in a transaction, A aborted one, cycles, kind of branch.
void AppendBranches(const perfdata::BranchArray& branches, std::string_view lead,
                    const AppendPlace& place, std::string& out);

}  // namespace stackreel::views
