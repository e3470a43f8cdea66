// What arm64 pointer authentication does to the pointers of this process.
#pragma once

#include <cstdint>
#include <optional>

namespace stackreel::os {

struct PointerAuthentication {
  // PR_PAC_AP*KEY (linux/prctl.h): IA 1, IB 2, DA 4, DB 8, GA 16; nothing: the kernel cannot say.
  std::optional<uint64_t> enabled_keys;
  uint64_t insn_mask = 0, data_mask = 0;  // the bits of a user pointer that a code takes
};

// Asks the CPU itself, with no privilege and no other process: strips a pointer of which all bits
// but 55 are set (XPACLRI, XPACD) and sees which are gone. On today's kernels the answer is the
// same for every process. Nothing if the CPU has no pointer authentication, or is no arm64.
std::optional<PointerAuthentication> LearnPointerAuthentication();

}  // namespace stackreel::os
