// A recording of a host and a guest machine, for comparisons.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace stackreel {

// Samples of the host's kernel, a process of the host, the kernel of its guest and a process in
// that. The kernels have the same addresses. (Processes have not: perf, which takes a
// guest's for the emulator's own, would see but one.) The binary is mapped at `base`, its
// functions lie 0x100 bytes apart from base + 0x1000 on.
Result<std::vector<uint8_t>> GuestRecording(const char* binary, uint64_t base);

}  // namespace stackreel
