// Whether a function touches the word of the stack that holds its return address.
#pragma once

#include "base/bytes.h"

namespace stackreel::x86 {

// Functions do that which look at their caller (__builtin_return_address: an unwinder's first step,
// dlopen, lock profilers) or change where they return to. Of the code from its first byte on, what
// is run if no branch is taken is followed, up to some number of instructions; the stack pointer
// and, where it is made so, the frame pointer are known by pushes, pops and constants. What lies
// behind a branch that is always taken, or is addressed in another way, is not seen.
[[nodiscard]] bool TouchesReturnAddress(ByteView code);

}  // namespace stackreel::x86
