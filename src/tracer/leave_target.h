// What is left of tracing in a target when its code is as it was: hijacked return addresses, and
// the memory of the agent.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "patch/room.h"
#include "patch/site.h"
#include "tracer/installed_agent.h"
#include "tracer/target.h"
#include "tracer/untold_calls.h"

namespace stackreel::tracer {

struct LeaveOutcome {
  size_t put_back = 0;  // return addresses
  size_t busy = 0;      // threads in the agent or a stub, with calls that could not be put back
};

// Whether a site's stub records calls. The others are of functions that walk the stack: they must
// stay patched as long as any return address is hijacked, or an exception finds no way.
[[nodiscard]] bool RecordsCalls(const patch::Site& site);

// Where the agent and the stubs of these sites are mapped.
Result<std::vector<patch::AddressRange>> AgentCodeRanges(const Target& target,
                                                         const AgentPlace& agent,
                                                         std::span<const patch::Site> sites);

// Ends recording and puts the true return addresses back for every thread that is not busy. The
// target is held, the sites that record are original. What it found open is added to `open`. Call
// it again (the target having run a little) while there are busy threads.
Result<LeaveOutcome> PutReturnAddressesBack(Target& target, const AgentPlace& agent,
                                            std::span<const patch::AddressRange> code,
                                            UntoldCalls& open);

// Gives the agent's private memory back and marks it as nobody's, when no thread is busy. Code and
// stubs stay: a context that the program keeps somewhere may lead there still.
Status MarkLeft(Target& target, const AgentPlace& agent);

}  // namespace stackreel::tracer
