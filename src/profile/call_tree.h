// Call trees, flat tables, filters and differences over a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace stackreel::profile {

enum class SortKey : uint8_t { kComm, kDso, kSym, kPid, kTid, kCpu, kSrcline };

struct Filter {
  std::vector<std::string> comms, dsos, symbols;  // empty: all; symbols: any frame's
  std::vector<uint32_t> pids, tids, cpus;
  uint64_t time_start = 0, time_end = UINT64_MAX;
  std::vector<uint32_t> events;
  [[nodiscard]] bool Matches(const Profile& profile, const ProfileSample& sample) const;
};

// One row of the flat table: the values of the sort keys, of the innermost frame (self) and of any
// frame (children).
struct FlatRow {
  std::vector<std::string> keys;
  uint64_t self = 0, children = 0;
  uint64_t samples = 0;
  // For its call graph: the frames that make up this row.
  std::vector<FrameId> frames;
};
struct FlatTable {
  std::vector<SortKey> keys;
  std::vector<FlatRow> rows;  // sorted by children (or self), largest first
  uint64_t total = 0;
};
FlatTable MakeFlatTable(const Profile& profile, const Filter& filter,
                        const std::vector<SortKey>& keys, bool children);

// A tree of frames with inclusive and own weights. Node 0 is the root, without a frame.
struct TreeNode {
  FrameId frame = 0;
  uint64_t total = 0, self = 0;
  uint32_t parent = 0;
  std::vector<uint32_t> children;  // by weight, largest first
};
struct CallTree {
  std::vector<TreeNode> nodes;
};
enum class TreeDirection : uint8_t { kCallee, kCaller };  // from the root down; from the leaf up
CallTree MakeCallTree(const Profile& profile, const Filter& filter, TreeDirection direction);
// Callers (direction kCaller) or callees of one row's frames.
CallTree MakeRowTree(const Profile& profile, const Filter& filter, const FlatRow& row,
                     TreeDirection direction);

}  // namespace stackreel::profile
