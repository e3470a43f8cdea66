// What may be wrong with arguments before their values are looked at.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"

namespace stackreel::cli {

// kUsage for an option that `command` and its parent do not have, with the nearest that there is,
// and for a value that CheckGiven refuses. CLI11 names such an option beside a FILE that was meant,
// and takes the argument behind `--option=` for its value. `args` stand behind the program's name.
Status CheckArguments(const CLI::App& program, const std::vector<std::string>& args);

// kUsage if a value, or a part of a list, is empty: no option means anything by that, and a filter
// would choose all. `where` is what to call the option.
Status CheckGiven(const CLI::Option& option, const std::string& value, const std::string& where);

}  // namespace stackreel::cli
