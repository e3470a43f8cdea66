// Mount namespaces: where the files are that a process in a container named.
#pragma once

#include <cstdint>

namespace stackreel::symfiles {

// The inode number of a process's mount namespace (0: this process); 0 if it is gone or not ours to
// ask.
uint64_t MountNamespaceOf(uint32_t pid);

// A process that lives in that mount namespace, so that /proc/PID/root shows its files: `preferred`
// if it still does, else any; 0 if none does.
uint32_t ProcessInMountNamespace(uint64_t inode, uint32_t preferred);

}  // namespace stackreel::symfiles
