// Children that a traced process has forked: they are patched as it was when they were made, and
// record into the same pool.
#pragma once

#include <cstdint>
#include <vector>

#include "tracer/installed_agent.h"
#include "tracer/leave_target.h"
#include "tracer/target.h"

namespace stackreel::tracer {

// Whether a process maps the pool with this inode.
bool MapsPool(uint32_t pid, uint64_t pool_inode);
// Processes other than `pid` that map the pool with this inode.
std::vector<uint32_t> FindForkedChildren(uint32_t pid, uint64_t pool_inode);

// Leaves all of them; what they had open is added to `open`. Gives how many could not be left
// whole.
size_t LeaveForkedChildren(const Target& parent, const InstalledAgent& agent, UntoldCalls& open);

}  // namespace stackreel::tracer
