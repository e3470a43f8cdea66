// A dumped stack without the bytes that the kernel reserved but did not fill.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "perfdata/attr.h"

namespace stackreel::record {

// Appends a SAMPLE record of `attr` to `out` with its stack dump cut to what is valid.
//
//   STACK_USER   u64 size   bytes[size]                       u64 dyn_size
//   becomes      u64 kept   bytes[kept], kept ≥ dyn_size + 8  u64 dyn_size
//
// A dump that was filled to its end keeps its size, so that "dyn_size = size" goes on meaning that
// the stack may have been cut. A record that is not as `attr` says is appended as it is.
void AppendTrimmed(ByteView record, const perfdata::Attr& attr, std::vector<uint8_t>& out);

}  // namespace stackreel::record
