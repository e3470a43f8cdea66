// Where a function without call-frame information keeps what its caller needs, by its own code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace stackreel::unwind::aarch64 {

// The caller's sp, return address and frame pointer, from the sp or (from_fp) x29 of now:
//   cfa = base + cfa_offset; the others at cfa + their offset, or (nothing) still in lr and x29.
struct ScannedFrame {
  bool from_fp = false;
  int32_t cfa_offset = 0;
  std::optional<int32_t> ra_offset = std::nullopt;
  std::optional<int32_t> fp_offset = std::nullopt;
  bool fp_unknown = false;
  friend bool operator==(const ScannedFrame&, const ScannedFrame&) = default;
};

// Goes from `start` in `code` straight on to the function's return (or tail call), taking no
// conditional branch and stepping over calls, and follows sp, x29 and x30 through registers and
// stack. _init, _fini, PLT entries and much hand-written code have no CFI. Nothing if something is
// done to these registers that is not followed, or the return is not among the first 256
// instructions, or x30 is lost. The result is a guess: the return address must be checked to be
// one.
std::optional<ScannedFrame> ScanToReturn(ByteView code, size_t start);

}  // namespace stackreel::unwind::aarch64
