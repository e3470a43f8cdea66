#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "profile/call_tree.h"
#include "views/flame_graph.h"
#include "views/flame_layout.h"

namespace stackreel::views {
namespace {

// Readers split a line at ';' and at its last space.
std::string FoldedName(std::string name) {
  for (char& c : name) {
    if (c == ';') c = ':';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return name;
}

}  // namespace

std::string Folded(const profile::Profile& profile, const profile::Filter& filter) {
  profile::TreeOptions options;
  options.by_comm = true;
  options.merge_unresolved = true;
  const profile::CallTree tree = MakeCallTree(profile, filter, options);

  // Depth first with our own stack; `path` holds the names down to the node at hand.
  struct Item {
    uint32_t node;
    size_t path_size;  // of its parent
    std::string name;
  };
  std::string out;
  std::string path;
  std::vector<Item> pending;
  const auto push_children = [&](uint32_t at) {
    const profile::TreeNode& node = tree.nodes[at];
    const size_t first = pending.size();
    for (uint32_t i = 0; i < node.child_count; ++i) {
      const uint32_t child = node.first_child + i;
      pending.push_back({child, path.size(), FoldedName(FlameName(profile, tree.nodes[child]))});
    }
    std::sort(pending.begin() + static_cast<std::ptrdiff_t>(first), pending.end(),
              [](const Item& a, const Item& b) {
                return std::tie(a.name, a.node) > std::tie(b.name, b.node);
              });
  };
  push_children(0);
  while (!pending.empty()) {
    const Item item = std::move(pending.back());
    pending.pop_back();
    path.resize(item.path_size);
    if (!path.empty()) path += ';';
    path += item.name;
    const profile::TreeNode& node = tree.nodes[item.node];
    if (node.self.weight > 0) out += fmt::format("{} {}\n", path, node.self.weight);
    push_children(item.node);
  }
  return out;
}

}  // namespace stackreel::views
