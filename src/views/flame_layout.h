// Call tree → the boxes of a flame graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/call_tree.h"
#include "profile/profile.h"

namespace stackreel::views {

// What a box stands for, which gives its colour.
enum class FlameKind : uint8_t {
  kRoot,
  kComm,
  kUser,
  kKernel,
  kInlined,
  kJit,
  kUnresolved,
  kMarker
};

struct FlameBox {
  uint64_t start = 0, weight = 0;  // of FlameLayout::total
  uint32_t depth = 0;              // 0: the root
  FlameKind kind = FlameKind::kUser;
  std::string name;
  std::string module;  // "" for the root and comms
  profile::Amount total;
};

struct FlameLayout {
  uint64_t total = 0;
  uint32_t depth = 0;  // number of rows
  uint64_t left_out = 0;
  // Parents before children, siblings by name, so that equal stacks lie side by side in every
  // picture.
  std::vector<FlameBox> boxes;
};
FlameLayout LayOut(const profile::Profile& profile, const profile::CallTree& tree);

// "foo", "foo (inlined)", "[libfoo.so]" where the function is not known, or the comm.
std::string FlameName(const profile::Profile& profile, const profile::TreeNode& node);
FlameKind KindOf(const profile::Profile& profile, const profile::TreeNode& node);

}  // namespace stackreel::views
