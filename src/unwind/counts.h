// What an Unwinder counts; Unwinder::counters() gives them their names.
#pragma once

#include <cstdint>

namespace stackreel::unwind {

struct Counts {
  uint64_t stacks = 0;
  uint64_t frames = 0;
  uint64_t cache_misses = 0;
  uint64_t full_restarts = 0;
  uint64_t frame_pointer_steps = 0;
  uint64_t bad_rules = 0;          // CFI that could not be read
  uint64_t codes_unannounced = 0;  // arm64: a signed return address where CFI says it is not
  // Return addresses that a tracer keeps: as it has them, and as what leads on from them tells.
  uint64_t traced_returns = 0, inferred_returns = 0;
};

}  // namespace stackreel::unwind
