// Lengths of time as people type them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace stackreel {

// "100ns", "12us", "1.5ms", "2s", "3m" → nanoseconds, as is a number alone. nsec, usec, msec, sec
// and min are units too, as uftrace has them. kUsage, naming `option`: it is none, or is of 285
// years and more.
Result<uint64_t> ParseDuration(std::string_view option, std::string_view text);

}  // namespace stackreel
