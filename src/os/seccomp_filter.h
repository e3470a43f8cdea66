// What the seccomp filters of a thread would do about a system call.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"

namespace stackreel::os {

// One filter: a program of classic BPF that ends with a SECCOMP_RET_*.
using SeccompFilter = std::vector<sock_filter>;

// The action (SECCOMP_RET_ACTION_FULL of what it returns) of one filter. Whatever the kernel would
// not have let in is SECCOMP_RET_KILL_PROCESS. linux/Documentation/networking/filter.rst.
uint32_t RunSeccompFilter(std::span<const sock_filter> filter, const seccomp_data& call);

// Of several filters the kernel takes the action that comes first in seccomp(2).
uint32_t StrictestAction(std::span<const SeccompFilter> filters, const seccomp_data& call);
// Whether that ends the thread, or sends it a signal.
bool IsHarmful(uint32_t action);

// All filters of a thread that this very thread holds by ptrace(2). kPermission: only who has
// CAP_SYS_ADMIN, and no filter himself, may see them. kUnsupported: this kernel does not show them.
Result<std::vector<SeccompFilter>> ReadSeccompFilters(uint32_t tid);

}  // namespace stackreel::os
