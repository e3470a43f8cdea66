// What bytes of x86 code tell where there is no call-frame information.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace stackreel::unwind::x86_64 {

// How many bytes before a return address IsAfterCall wants; fewer are taken too.
inline constexpr size_t kLongestCall = 7;

// Whether a call instruction can end where `before` ends (`before` is code in front of a return
// address). True for too few bytes to say.
bool IsAfterCall(ByteView before);

}  // namespace stackreel::unwind::x86_64
