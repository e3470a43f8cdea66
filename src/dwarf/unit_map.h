// Which unit of a file an svma belongs to, and the line tables that units share.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/counters.h"
#include "dwarf/flat_intervals.h"
#include "dwarf/line_table.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

// The line tables of a file, each read on first need and once, however many units refer to it.
class LineTables {
 public:
  LineTables(const DebugInfo& info, Counters& counters);
  // Null if the unit has none. Its root must have been read.
  LineTable* Of(const Unit& unit);

 private:
  const DebugInfo& info_;
  Counters& counters_;
  uint64_t rows_left_;
  std::unordered_map<uint64_t, std::unique_ptr<LineTable>> tables_;  // by offset in .debug_line
};

// From the root DIEs' own ranges. Where these are missing (DWARF 2, which had no way to write down
// more than one range), from .debug_aranges, and from the sequences of the unit's line table.
// .debug_aranges alone will not do: clang writes none unless told to.
class UnitMap {
 public:
  UnitMap(DebugInfo& info, LineTables& lines, uint64_t* ranges_left, Counters& counters);

  // The place in info.units() of the unit that covers an address, or FlatIntervals::kNone.
  [[nodiscard]] uint32_t Find(uint64_t svma) const { return unit_at_.Find(svma); }

 private:
  FlatIntervals unit_at_;
};

}  // namespace stackreel::dwarf
