// Where a function without call-frame information keeps its return address, by its own code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace stackreel::unwind::x86_64 {

// A place on the stack, from the value that sp or fp has now.
struct StackPlace {
  bool from_fp = false;
  int32_t offset = 0;
  friend bool operator==(const StackPlace&, const StackPlace&) = default;
};

struct ScannedFrame {
  StackPlace return_address;
  // Where the caller's frame pointer is; nothing: still in the register.
  std::optional<StackPlace> saved_fp;
  friend bool operator==(const ScannedFrame&, const ScannedFrame&) = default;
};

// Goes from `start` in `code` straight on to the function's return (or jump through memory or a
// register), taking no conditional jump and stepping over calls, and follows what is done to sp and
// fp: how far it is to the return address is what the rest of the function takes off the stack. The
// startup files of every program (_init, _fini, crtstuff's functions) and many hand-written ones
// have no CFI, and short ends; the C functions of the 32-bit vDSO have none either. Nothing if an
// instruction is not known, or the return is not among the first 128. The result is a guess: the
// word found there must be checked to be a return address.
std::optional<ScannedFrame> ScanToReturn(ByteView code, size_t start, unsigned word_size);

}  // namespace stackreel::unwind::x86_64
