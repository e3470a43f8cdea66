// Programs that the kernel does not let their users measure.
#pragma once

#include <string>

namespace stackreel::os {

// Why the kernel ends the events on a task of this user that executes the program `path`, which
// must be there: "PATH runs as root (set-user-ID)", "… has capabilities of its own", "… may not be
// read". Empty where it does not. See commit_creds() and would_dump() in Linux: a process that has
// got other rights than who started it, or shows a file that the user may not read, is not
// dumpable, and exec(2) ends all that measures such a one.
std::string WhyNotMeasured(const std::string& path);

}  // namespace stackreel::os
