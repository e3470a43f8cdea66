// A recording of arm64 processes whose return addresses are signed, for the command-line goldens.
#pragma once

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace stackreel {

// kRecorder: processes with a mask of their own, which changes, with one that a fork copied and
// exec took away, with that of the recorder's CPU, of 32 bits; and a mask that hits addresses.
// kKernel: processes of which the kernel says it, in PTR_AUTH records.
enum class MasksOf : uint8_t { kRecorder, kKernel };
// Their binary is mapped at `base`, its functions lie 0x100 bytes apart from base + 0x1000 on.
Result<std::vector<uint8_t>> SignedRecording(const char* binary, uint64_t base,
                                             MasksOf masks = MasksOf::kRecorder);

}  // namespace stackreel
