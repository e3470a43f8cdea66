// What the terminal is like, where there is one.
#pragma once

#include <cstddef>

#include "cli/command.h"

namespace stackreel::cli {

// `fd` is STDOUT_FILENO or STDERR_FILENO.
bool IsTerminal(int fd);
// Columns, at least 40; 0 if `fd` is no terminal.
size_t TerminalWidth(int fd);
// Auto: on a terminal that is not "dumb", unless NO_COLOR is set and not empty (no-color.org).
bool UseColor(ColorWhen when, int fd);

}  // namespace stackreel::cli
