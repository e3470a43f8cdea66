// Leaving a frame without call-frame information, or with some that leads nowhere.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/aarch64/code_scan.h"
#include "unwind/unwind.h"

namespace stackreel::unwind::aarch64 {

// Whether `avma`, without its code, is in executable memory and behind a call, as far as its bytes
// are known.
bool IsReturnAddress(const UnwindMaps& maps, uint64_t avma);

// A frame's caller by its frame record. The caller's sp is not known: only that it lies above.
struct FrameRecord {
  uint64_t fp = 0;
  uint64_t pc = 0;
};

// The frame record { x29, x30 } at `fp` (AAPCS64, 6.4.6), every part of which is checked: it is
// aligned, in the dump and not below `sp_floor`; the next one lies higher (or is 0: the end); the
// return address is one (or 0).
std::optional<FrameRecord> ReadFrameRecord(const UnwindInput& input, uint64_t sp_floor,
                                           uint64_t fp);

// What the code from `svma` on says of its frame; nothing if it is not known or does not say.
std::optional<ScannedFrame> ScanCode(const UnwindModule& module, Svma svma);

}  // namespace stackreel::unwind::aarch64
