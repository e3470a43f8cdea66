// What bytes of x86 code tell where there is no call-frame information.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace stackreel::unwind::x86_64 {

// How many bytes before a return address IsAfterCall wants; fewer are taken too.
inline constexpr size_t kLongestCall = 7;

// Whether a call instruction can end where `before` ends (`before` is code in front of a return
// address). True for too few bytes to say.
bool IsAfterCall(ByteView before);

// How far above sp the return address is, where the code at an exact pc shows it: at the first
// instructions of a function that sets up a frame pointer, at its return, and at a jump through
// memory as in a PLT without CFI. `before` is the byte in front of `code`.
std::optional<unsigned> ReturnAddressOffset(ByteView code, ByteView before, unsigned word_size);

}  // namespace stackreel::unwind::x86_64
