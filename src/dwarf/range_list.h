// The code that a DIE covers: DW_AT_low_pc and high_pc, .debug_ranges, .debug_rnglists.
// Follows DWARF 5, section 2.17, and DWARF 4, section 2.17.3.
#pragma once

#include <cstdint>
#include <vector>

#include "dwarf/debug_sections.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

// How a list ended.
enum class RangesRead : uint8_t { kGood, kBad, kTooMany };

// Appends the non-empty ranges of a DW_AT_ranges value. Each entry takes one of `*entries_left`.
RangesRead ReadRangeList(const DebugInfo& info, const Unit& unit, const FormValue& value,
                         uint64_t* entries_left, std::vector<AddressRange>* out);

// Appends the ranges of a DIE of `unit` with these attributes: `ranges` if there, else the pair.
RangesRead ReadDieRanges(const DebugInfo& info, const Unit& unit, const FormValue& low_pc,
                         const FormValue& high_pc, const FormValue& ranges, uint64_t* entries_left,
                         std::vector<AddressRange>* out);

}  // namespace stackreel::dwarf
