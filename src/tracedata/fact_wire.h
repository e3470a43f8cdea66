// Facts as bytes: u32 size of what follows the next word | u16 type | u16 0 | fields.
#pragma once

#include <cstdint>
#include <vector>

#include "base/byte_writer.h"
#include "base/bytes.h"
#include "base/counters.h"
#include "tracedata/trace_facts.h"

namespace stackreel::tracedata {

// Appends one fact. Texts longer than kMaxFactText are cut there.
inline constexpr size_t kMaxFactText = 64 << 10;
void EncodeFact(const TraceFact& fact, ByteWriter& out);

// The facts in a block of them. Types that a later version may have are passed over and counted
// ("tracedata.unknown_fact"), damaged ones too ("tracedata.bad_fact"); fields that a later version
// may have added to a fact are left out.
std::vector<TraceFact> DecodeFacts(ByteView bytes, Counters& counters);

}  // namespace stackreel::tracedata
