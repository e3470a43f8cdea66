// perf-PID.map: names that JIT compilers give to their code.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace stackreel::symfiles {

// The text of a process's map: /tmp/perf-PID.map, or the one in its container while it lives
// (/proc/PID/root/tmp, by its number there). Only a file of this user's or of root is believed.
// kNotFound if there is none.
Result<std::string> ReadPerfMap(uint32_t pid);

// kPermission if a file belongs to somebody else than this user or root, kNotFound if it is not
// there: what a stranger wrote names nothing.
Status CheckOwner(const std::string& path);

// The last number of "NSpid:" in the text of /proc/PID/status: the process's number in its
// innermost namespace; 0 if the text has none.
uint32_t InnermostPid(const std::string& status);

}  // namespace stackreel::symfiles
