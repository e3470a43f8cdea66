// Why the chains of different unwinders part behind a frame: what the call-frame information in
// force there says, and the code.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "support/recorded_stacks.h"
#include "unwind/unwind.h"

namespace stackreel {

enum class PartingCause {
  kNoFile,        // code in no file: made at run time, or a file that is not to be had
  kPoppedSlot,    // the sampled function is about to return; a register it popped lies below sp
  kAfterSyscall,  // no information at the address behind a system call, where a thread waits
  kNoCfi,         // a file has no information for this address
  kOutermost,     // it says that nothing called this frame
  kPlt,           // an expression that depends on the address: a PLT stub
  kWrongCfi,      // it leads to no code, and a scan of the code leads to a return address
  kOther,
};
const char* PartingCauseName(PartingCause cause);

// The cause behind frames[at - 1], the last that all have; `frames` are ours.
PartingCause FindPartingCause(const RecordedStack& stack, const std::vector<unwind::Frame>& frames,
                              size_t at);

}  // namespace stackreel
