// Leaving a frame that has no call-frame information.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/unwind.h"
#include "unwind/x86_64/code_scan.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind::x86_64 {

// Whether `avma` is in executable memory and behind a call, as far as its bytes are known.
bool IsReturnAddress(const UnwindMaps& maps, uint64_t avma);

// What the code from `svma` on says of its frame; nothing if it is not known or does not say.
std::optional<ScannedFrame> ScanCode(const UnwindModule& module, Svma svma, unsigned word_size);

// A frame's caller. Without a value, fp is not known.
struct Caller {
  uint64_t pc = 0;
  uint64_t sp = 0;
  std::optional<uint64_t> fp;
};

// The caller by the frame-pointer chain, every link of which is checked: the frame pointer is
// aligned, in the dump and not below sp; the return address is one (or 0). The one it leads to lies
// higher, or is 0: the end; or else the caller does not use one, and its code, which has to be
// known, has the call.
template <class Cpu>
std::optional<Caller> FollowFramePointer(const UnwindInput& input, uint64_t sp, uint64_t fp);

// The caller by what a scan of the code found; the word found has to be a return address.
template <class Cpu>
std::optional<Caller> FollowScanned(const UnwindInput& input, const ScannedFrame& scanned,
                                    uint64_t sp, std::optional<uint64_t> fp);

// The caller by scanning the innermost function, whose CFI led to no code: some hand-written
// functions have wrong CFI.
template <class Cpu>
std::optional<Caller> FollowInnermostByScan(const UnwindInput& input, uint64_t pc, uint64_t sp,
                                            std::optional<uint64_t> fp);

}  // namespace stackreel::unwind::x86_64
