// Call trees over a profile: for flame graphs, and of one row of the flat table.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/filter.h"
#include "profile/flat_table.h"
#include "profile/profile.h"
#include "profile/stack_weights.h"

namespace stackreel::profile {

// What the children of a node are: what it calls (from the root down), or what calls it (from the
// innermost frame up).
enum class TreeDirection : uint8_t { kCallees, kCallers };

// Frames of one function are one node: in one module, inlined or not, whatever their lines.
struct TreeNode {
  FrameId frame = kNoFrame;  // one of its frames; kNoFrame: the root, or a comm
  TextId comm = 0;           // of a comm's node
  Amount total;              // with its children
  Amount self;               // that end here
  Amount left_out;           // of children below the limits
  uint32_t parent = 0;
  uint32_t first_child = 0, child_count = 0;  // in CallTree::nodes, largest first
};
// Node 0 is the root. A parent comes before its children. total = self + left_out + Σ children.
struct CallTree {
  std::vector<TreeNode> nodes;
  [[nodiscard]] std::span<const TreeNode> ChildrenOf(const TreeNode& node) const {
    return {nodes.data() + node.first_child, node.child_count};
  }
};

struct TreeOptions {
  TreeDirection direction = TreeDirection::kCallees;
  bool by_comm = false;             // the children of the root are comms
  uint64_t min_weight = 0;          // lighter nodes are left out
  uint32_t max_depth = UINT32_MAX;  // and what lies below this many levels of frames
  bool merge_unresolved = false;    // frames without a function are one node a module
};
CallTree MakeCallTree(const Profile& profile, const Filter& filter, const TreeOptions& options);

// What the graph of a row shows.
enum class RowGraph : uint8_t {
  kCallees,      // from the row's outermost frame to what it calls: perf's --children -g caller
  kCallers,      // from the row's innermost frame to what calls it: --children -g callee
  kSelfCallers,  // from the innermost frame of the row's own samples: --no-children -g callee
  kSelfPaths,    // from the root to the row's own samples: --no-children -g caller
};
// One tree for each of `rows` (indices into table.rows), of `filter`'s samples; options.direction
// and by_comm do not matter.
std::vector<CallTree> MakeRowTrees(const Profile& profile, const Filter& filter,
                                   const FlatTable& table, std::span<const uint32_t> rows,
                                   RowGraph graph, const TreeOptions& options);

}  // namespace stackreel::profile
