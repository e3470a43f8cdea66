// One line on the terminal that shows how far a long job is.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace stackreel::cli {

// Called with bytes done and in all (0: not known), it redraws a line on stderr at most ten times a
// second, first after a second: bytes, rate and time left. The line goes when the function does.
std::function<void(uint64_t, uint64_t)> ProgressLine(const std::string& what);

}  // namespace stackreel::cli
