// Leaving a process of which nothing is known but what its agent's journal says.
#pragma once

#include <cstdint>

#include "base/error.h"
#include "tracer/installed_agent.h"
#include "tracer/leave_target.h"
#include "tracer/target.h"

namespace stackreel::tracer {

struct RecoverOutcome {
  size_t sites = 0;     // that the journal speaks of
  size_t restored = 0;  // that are original now
  size_t gone = 0;      // whose module is not mapped any more
  size_t put_back = 0;  // return addresses
  size_t busy = 0;      // threads that stayed in the agent
  bool left = false;    // nothing is left but code that nobody runs
};

// Unpatches what another tracer (which has died, or is the parent's) has patched, and puts return
// addresses back. `open` gets what the threads had open.
Result<RecoverOutcome> Recover(Target& target, const AgentPlace& agent, UntoldCalls& open);

}  // namespace stackreel::tracer
