#include "views/flame_layout.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

namespace stackreel::views {

using profile::Frame;
using profile::Profile;
using profile::TreeNode;

std::string FlameName(const Profile& profile, const TreeNode& node) {
  if (node.frame == profile::kNoFrame) {
    const std::string_view comm = profile.Text(node.comm);
    return comm.empty() ? "[unknown]" : std::string(comm);
  }
  const Frame& frame = profile.frames()[node.frame];
  if (frame.function != 0) return FrameName(profile, frame);
  const std::string_view module = profile.Text(frame.module);
  if (module.empty()) return "[unknown]";
  return module.front() == '[' ? std::string(module) : "[" + std::string(module) + "]";
}

FlameKind KindOf(const Profile& profile, const TreeNode& node) {
  if (node.frame == profile::kNoFrame) return FlameKind::kComm;
  const Frame& frame = profile.frames()[node.frame];
  if (frame.marker) return FlameKind::kMarker;
  if (frame.function == 0) return FlameKind::kUnresolved;
  if (frame.kernel) return FlameKind::kKernel;
  if (frame.jit) return FlameKind::kJit;
  return frame.inlined ? FlameKind::kInlined : FlameKind::kUser;
}

FlameLayout LayOut(const Profile& profile, const profile::CallTree& tree) {
  FlameLayout layout;
  layout.total = tree.nodes[0].total.weight;
  struct Item {
    uint32_t node;
    uint32_t depth;
    uint64_t start;
    std::string name;
  };
  std::vector<Item> pending = {{0, 0, 0, "all"}};
  while (!pending.empty()) {
    Item item = std::move(pending.back());
    pending.pop_back();
    const TreeNode& node = tree.nodes[item.node];
    layout.left_out += node.left_out.weight;
    layout.depth = std::max(layout.depth, item.depth + 1);

    std::vector<Item> children;
    for (uint32_t i = 0; i < node.child_count; ++i) {
      const uint32_t child = node.first_child + i;
      children.push_back({child, item.depth + 1, 0, FlameName(profile, tree.nodes[child])});
    }
    std::sort(children.begin(), children.end(), [](const Item& a, const Item& b) {
      return std::tie(a.name, a.node) < std::tie(b.name, b.node);
    });
    uint64_t start = item.start;
    for (Item& child : children) {
      child.start = start;
      start += tree.nodes[child.node].total.weight;
    }

    FlameBox box;
    box.start = item.start;
    box.weight = node.total.weight;
    box.depth = item.depth;
    box.kind = item.node == 0 ? FlameKind::kRoot : KindOf(profile, node);
    box.name = std::move(item.name);
    if (node.frame != profile::kNoFrame) {
      box.module = profile.Text(profile.frames()[node.frame].module);
    }
    box.total = node.total;
    layout.boxes.push_back(std::move(box));
    pending.insert(pending.end(), std::make_move_iterator(children.rbegin()),
                   std::make_move_iterator(children.rend()));
  }
  return layout;
}

}  // namespace stackreel::views
