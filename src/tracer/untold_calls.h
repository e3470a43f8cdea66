// Calls that are open and that no event tells of: what the trace of a program that ends in their
// midst would lack.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tracedata/agent_memory.h"
#include "tracer/installed_agent.h"
#include "tracer/target.h"

namespace stackreel::tracer {

struct UntoldCall {
  uint64_t start = 0;  // ticks
  uint32_t function = 0;
  friend bool operator==(const UntoldCall&, const UntoldCall&) = default;
};
// Of each thread, the outermost first; by pid and tid as the agent knows them.
using UntoldCalls = std::map<std::pair<uint32_t, uint32_t>, std::vector<UntoldCall>>;

// As they are now, while the program runs: calls that begin or end meanwhile may be missing, none
// is made up. Calls that are too young to be written (AgentControl::min_duration) do not count.
Result<UntoldCalls> ReadUntoldCalls(const Target& target, const AgentPlace& agent);

}  // namespace stackreel::tracer
