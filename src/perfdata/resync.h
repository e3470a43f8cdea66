// Finds records again behind damaged bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "perfdata/record.h"

namespace stackreel::perfdata {

// Whether a record type is one that the kernel or perf writes, or one of ours.
bool IsKnownRecordType(uint32_t type);

// How far a window must reach behind an offset for the offset to be judged.
inline constexpr size_t kResyncReach = size_t{4} * 65536;

// The first offset, from `from` on, at which records lie one behind the other: four of them, or one
// and a FINISHED_ROUND, or two that end where the data does (`at_end`: the window's end is that).
// Headers are looked at for known types, for bits of misc that are in use, and for sizes. Nothing
// if there is none at which kResyncReach bytes could be looked at.
std::optional<size_t> FindRecords(ByteView window, size_t from, bool at_end, Endian endian);

}  // namespace stackreel::perfdata
