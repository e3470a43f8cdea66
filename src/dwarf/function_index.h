// svma → the function there and those it was inlined into, for one unit.
#pragma once

#include <cstdint>
#include <vector>

#include "base/counters.h"
#include "dwarf/flat_intervals.h"
#include "dwarf/unit.h"

namespace stackreel::dwarf {

// A function with code of its own (DW_TAG_subprogram), or one place where a function was inlined
// (DW_TAG_inlined_subroutine).
struct FunctionNode {
  uint64_t die = 0;                        // offset in .debug_info, for its name
  uint32_t caller = FlatIntervals::kNone;  // the node it was inlined into
  uint32_t call_file = 0;  // in the unit's line table; where in the caller the call stood
  uint32_t call_line = 0;
  uint32_t call_column = 0;
  uint32_t name = 0;  // for the owner of the index: what the name was resolved to
};

class FunctionIndex {
 public:
  // Reads the DIEs of a unit in one sweep. Each address range takes one of `*ranges_left`. What is
  // read before damage is kept; damage is counted.
  static FunctionIndex Read(DebugInfo& info, Unit& unit, const DebugSectionFile& code,
                            uint64_t* ranges_left, Counters& counters);

  // The innermost function at an address, or null.
  [[nodiscard]] FunctionNode* Find(uint64_t svma) {
    const uint32_t index = node_at_.Find(svma);
    return index == FlatIntervals::kNone ? nullptr : &nodes_[index];
  }
  [[nodiscard]] FunctionNode* CallerOf(const FunctionNode& node) {
    return node.caller == FlatIntervals::kNone ? nullptr : &nodes_[node.caller];
  }
  [[nodiscard]] const std::vector<FunctionNode>& nodes() const { return nodes_; }

 private:
  friend class FunctionSweep;

  std::vector<FunctionNode> nodes_;
  FlatIntervals node_at_;
};

}  // namespace stackreel::dwarf
