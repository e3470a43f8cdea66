// Which unit of a file an svma belongs to, and the line tables that units share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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
  std::optional<uint64_t> rows_left_;                                // once there is a table
  std::unordered_map<uint64_t, std::unique_ptr<LineTable>> tables_;  // by offset in .debug_line
};

// From .debug_aranges; where these have nothing (clang writes none unless told to), from the root
// DIEs' own ranges; where these are missing too (DWARF 2 had no way to write down more than one
// range), from the sequences of line tables. Each is read for an address that those before it do
// not cover only: the root DIEs are all over .debug_info, and line tables are dear to run.
class UnitMap {
 public:
  UnitMap(DebugInfo& info, LineTables& lines, uint64_t* ranges_left, Counters& counters);

  // The place in info.units() of the unit that covers an address, or FlatIntervals::kNone.
  [[nodiscard]] uint32_t Find(uint64_t svma);

 private:
  FlatIntervals ReadLines();

  DebugInfo& info_;
  LineTables& lines_;
  uint64_t* ranges_left_;
  Counters& counters_;
  std::vector<bool> covered_;  // by place in info.units(), by what was read of the first two
  FlatIntervals by_aranges_;
  std::optional<FlatIntervals> by_roots_, by_lines_;
};

}  // namespace stackreel::dwarf
