// Pointer-authentication masks of arm64 recordings, from wherever the recording has them.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "perfdata/features.h"
#include "session/session.h"

namespace stackreel::session {

// Linux: the user mask is bits 54 down to the size of a virtual address; bit 55 selects the half.
// An address space whose highest executable mapping ends at `end` needs bit_width(end - 1) bits, so
// that all above, up to bit 54, may be a signature. Nothing if `end` is 0 or not a user address.
std::optional<PointerMask> MaskFromHighestMapping(Avma end);

// Whether a mask takes no bit from addresses below `highest_end`, the end of a process's highest
// executable mapping; true if it has none.
bool LeavesAddresses(const PointerMask& mask, Avma highest_end);

// Our header feature, else simpleperf's META_INFO; nothing if there is neither.
std::optional<PointerMask> MaskFromFeatures(const perfdata::Features& features, Endian endian);

}  // namespace stackreel::session
