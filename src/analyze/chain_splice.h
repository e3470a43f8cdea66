// Two chains of one stack made one: what the dump was long enough for, and what frame pointers say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace stackreel::analyze {

struct ChainSplice {
  size_t keep = 0;  // unwound frames, before
  size_t from = 0;  // the frame of the other chain that follows them
};

// Where a stack that the dump cut off goes on in the chain by frame pointers: behind the outermost
// frame that both have. Of a recursive function's frames, which all return to one address, the
// n-th of the one is the n-th of the other. The sampled pc alone is no such frame: both begin with
// it. Nothing if they have no frame in common, or no frame follows.
std::optional<ChainSplice> FindSplice(std::span<const uint64_t> unwound,
                                      std::span<const uint64_t> chain);

}  // namespace stackreel::analyze
