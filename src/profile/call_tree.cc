#include "profile/call_tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace stackreel::profile {
namespace {

// Numbers the frames by what is one node in a tree.
std::vector<uint32_t> NumberNodes(const Profile& profile, bool merge_unresolved) {
  std::map<std::array<uint64_t, 4>, uint32_t> numbers;
  std::vector<uint32_t> node_of_frame;
  node_of_frame.reserve(profile.frames().size());
  for (const Frame& f : profile.frames()) {
    const uint64_t bits = (f.inlined ? 1u : 0u) | (f.marker ? 2u : 0u) | (f.kernel ? 4u : 0u);
    const uint64_t address = f.function == 0 && !merge_unresolved ? f.address : 0;
    node_of_frame.push_back(
        numbers.try_emplace({f.function, f.module, address, bits}, numbers.size()).first->second);
  }
  return node_of_frame;
}

// Some samples' place in the forest, on the way down or up.
struct Cursor {
  StackId stack = kEmptyStack;
  Amount amount;
};

// Grows trees breadth first, merging stacks that look alike; a child that is too light is not
// grown, so time and space go to what will be seen.
class TreeGrower {
 public:
  TreeGrower(const Profile& profile, const StackForest& forest, const TreeOptions& options)
      : profile_(profile),
        forest_(forest),
        options_(options),
        node_of_frame_(NumberNodes(profile, options.merge_unresolved)) {}

  // From each of `roots` down; `weights` says how heavy each stack is.
  void GrowDown(CallTree& tree, uint32_t at, const std::vector<StackId>& roots,
                const StackWeights& weights) {
    std::vector<Cursor> cursors;
    cursors.reserve(roots.size());
    for (StackId root : roots) cursors.push_back({root, weights.total(root)});
    Grow(tree, at, std::move(cursors), [&](const Cursor& cursor, std::vector<Cursor>& next) {
      for (StackId callee : forest_.callees(cursor.stack)) {
        if (weights.total(callee).samples > 0) next.push_back({callee, weights.total(callee)});
      }
    });
  }

  // From each of `leaves` up.
  void GrowUp(CallTree& tree, uint32_t at, std::vector<Cursor> leaves) {
    Grow(tree, at, std::move(leaves), [&](const Cursor& cursor, std::vector<Cursor>& next) {
      const StackId caller = profile_.stacks()[cursor.stack].caller;
      if (caller != kEmptyStack) next.push_back({caller, cursor.amount});
    });
  }

 private:
  struct Work {
    uint32_t node;
    uint32_t depth;
    std::vector<Cursor> next;  // where its children begin
  };

  // Grows below node `at`, whose total holds what does not go on; `cursors` are added to it.
  template <typename Step>
  void Grow(CallTree& tree, uint32_t at, std::vector<Cursor> cursors, Step step) {
    for (const Cursor& cursor : cursors) tree.nodes[at].total += cursor.amount;
    std::vector<Work> level;
    level.push_back({at, 0, std::move(cursors)});
    while (!level.empty()) {
      std::vector<Work> below;
      for (Work& work : level) AddChildren(tree, work, step, below);
      level = std::move(below);
    }
  }

  template <typename Step>
  void AddChildren(CallTree& tree, Work& work, Step step, std::vector<Work>& below) {
    if (work.depth >= options_.max_depth) {
      for (const Cursor& cursor : work.next) tree.nodes[work.node].left_out += cursor.amount;
      return;
    }
    std::vector<Work> children = SplitByNode(work.next);
    work.next = {};
    const auto first_child = static_cast<uint32_t>(tree.nodes.size());
    for (Work& child : children) {
      TreeNode node;
      node.parent = work.node;
      node.frame = kNoFrame;
      for (const Cursor& cursor : child.next) {
        node.total += cursor.amount;
        node.frame = std::min(node.frame, profile_.stacks()[cursor.stack].frame);
      }
      if (node.total.weight < options_.min_weight) {
        tree.nodes[work.node].left_out += node.total;
        continue;
      }
      child.node = static_cast<uint32_t>(tree.nodes.size());
      child.depth = work.depth + 1;
      std::vector<Cursor> next;
      node.self = node.total;
      for (const Cursor& cursor : child.next) step(cursor, next);
      MergeSame(next);
      for (const Cursor& cursor : next) node.self -= cursor.amount;
      child.next = std::move(next);
      tree.nodes.push_back(node);
      below.push_back(std::move(child));
    }
    SortChildren(tree, first_child, below);
    tree.nodes[work.node].first_child = first_child;
    tree.nodes[work.node].child_count = static_cast<uint32_t>(tree.nodes.size()) - first_child;
  }

  // The cursors whose frames are one node together, in the order of the nodes' numbers.
  std::vector<Work> SplitByNode(std::vector<Cursor>& cursors) const {
    const auto number = [&](const Cursor& cursor) {
      return node_of_frame_[profile_.stacks()[cursor.stack].frame];
    };
    std::sort(cursors.begin(), cursors.end(), [&](const Cursor& a, const Cursor& b) {
      return std::tuple(number(a), a.stack) < std::tuple(number(b), b.stack);
    });
    std::vector<Work> parts;
    for (size_t i = 0; i < cursors.size(); ++i) {
      if (i == 0 || number(cursors[i]) != number(cursors[i - 1])) parts.push_back({0, 0, {}});
      parts.back().next.push_back(cursors[i]);
    }
    return parts;
  }

  // Cursors that met on one stack go on as one.
  static void MergeSame(std::vector<Cursor>& cursors) {
    std::sort(cursors.begin(), cursors.end(),
              [](const Cursor& a, const Cursor& b) { return a.stack < b.stack; });
    size_t out = 0;
    for (size_t i = 0; i < cursors.size(); ++i) {
      if (out > 0 && cursors[out - 1].stack == cursors[i].stack) {
        cursors[out - 1].amount += cursors[i].amount;
      } else {
        cursors[out++] = cursors[i];
      }
    }
    cursors.resize(out);
  }

  // Puts the nodes from `first` on, the last of which `below` will grow, into their final order.
  void SortChildren(CallTree& tree, uint32_t first, std::vector<Work>& below) {
    const size_t count = tree.nodes.size() - first;
    if (count < 2) return;
    std::vector<std::pair<TreeNode, Work>> pairs;
    pairs.reserve(count);
    const size_t first_work = below.size() - count;
    for (size_t i = 0; i < count; ++i) {
      pairs.emplace_back(tree.nodes[first + i], std::move(below[first_work + i]));
    }
    std::sort(pairs.begin(), pairs.end(),
              [&](const auto& a, const auto& b) { return HeavierOrFirst(a.first, b.first); });
    for (size_t i = 0; i < count; ++i) {
      tree.nodes[first + i] = pairs[i].first;
      below[first_work + i] = std::move(pairs[i].second);
      below[first_work + i].node = static_cast<uint32_t>(first + i);
    }
  }

  bool HeavierOrFirst(const TreeNode& a, const TreeNode& b) const {
    if (a.total.weight != b.total.weight) return a.total.weight > b.total.weight;
    const Frame& fa = profile_.frames()[a.frame];
    const Frame& fb = profile_.frames()[b.frame];
    if (fa.function != fb.function) return profile_.Text(fa.function) < profile_.Text(fb.function);
    if (fa.module != fb.module) return profile_.Text(fa.module) < profile_.Text(fb.module);
    return std::tuple(fa.address, fa.inlined, fa.kernel, a.frame) <
           std::tuple(fb.address, fb.inlined, fb.kernel, b.frame);
  }

  const Profile& profile_;
  const StackForest& forest_;
  const TreeOptions& options_;
  std::vector<uint32_t> node_of_frame_;
};

std::vector<StackId> RootsOf(const Profile& profile, const StackWeights& weights) {
  std::vector<StackId> roots;
  for (StackId stack : weights.touched()) {
    if (profile.stacks()[stack].caller == kEmptyStack) roots.push_back(stack);
  }
  return roots;
}

std::vector<Cursor> LeavesOf(const StackWeights& weights) {
  std::vector<Cursor> leaves;
  for (StackId stack : weights.touched()) {
    if (weights.self(stack).samples > 0) leaves.push_back({stack, weights.self(stack)});
  }
  return leaves;
}

void GrowGroup(const Profile& profile, const StackWeights& weights, TreeDirection direction,
               uint32_t at, TreeGrower& grower, CallTree& tree) {
  tree.nodes[at].total += weights.without_stack();
  tree.nodes[at].self += weights.without_stack();
  if (direction == TreeDirection::kCallees) {
    grower.GrowDown(tree, at, RootsOf(profile, weights), weights);
  } else {
    grower.GrowUp(tree, at, LeavesOf(weights));
  }
}

// The stacks of one group that belong to rows whose trees are wanted, by row.
class RowStacks {
 public:
  RowStacks(const Profile& profile, const FlatTable& table, const StackWeights& weights,
            const std::vector<StackId>& nearest_same)
      : profile_(profile), table_(table), weights_(weights), nearest_same_(nearest_same) {}

  void Want(uint32_t frame_key) { wanted_.try_emplace(frame_key); }

  void Collect(RowGraph graph) {
    if (graph == RowGraph::kCallers) SubtractInner();
    for (StackId stack : weights_.touched()) {
      const bool self = graph == RowGraph::kSelfCallers || graph == RowGraph::kSelfPaths;
      if (self && weights_.self(stack).samples == 0) continue;
      const StackId named = self ? SelfStack(profile_, stack) : stack;
      const auto it = wanted_.find(table_.key_of_frame[profile_.stacks()[named].frame]);
      if (it == wanted_.end()) continue;
      switch (graph) {
        case RowGraph::kSelfCallers:
        case RowGraph::kSelfPaths:
          it->second.push_back({stack, weights_.self(stack)});
          break;
        case RowGraph::kCallees:
          if (nearest_same_[stack] == kEmptyStack) it->second.push_back({stack, {}});
          break;
        case RowGraph::kCallers: {
          const Amount amount = InnermostAmount(stack);
          if (amount.samples > 0) it->second.push_back({stack, amount});
          break;
        }
      }
    }
  }

  std::vector<Cursor> Take(uint32_t frame_key) { return std::move(wanted_[frame_key]); }

 private:
  // inner_[s]: what of s's total goes through the same key again.
  void SubtractInner() {
    for (StackId stack : weights_.touched()) {
      if (nearest_same_[stack] != kEmptyStack) {
        inner_[nearest_same_[stack]] += weights_.total(stack);
      }
    }
  }
  Amount InnermostAmount(StackId stack) const {
    Amount amount = weights_.total(stack);
    if (const auto it = inner_.find(stack); it != inner_.end()) amount -= it->second;
    return amount;
  }

  const Profile& profile_;
  const FlatTable& table_;
  const StackWeights& weights_;
  const std::vector<StackId>& nearest_same_;
  std::unordered_map<uint32_t, std::vector<Cursor>> wanted_;
  std::unordered_map<StackId, Amount> inner_;
};

}  // namespace

CallTree MakeCallTree(const Profile& profile, const Filter& filter, const TreeOptions& options) {
  const std::vector<SortKey> keys =
      options.by_comm ? std::vector<SortKey>{SortKey::kComm} : std::vector<SortKey>{};
  const GroupedSamples grouped = GroupSamples(profile, filter, keys);
  const StackForest forest(profile);
  TreeGrower grower(profile, forest, options);
  StackWeights weights(profile);
  CallTree tree;
  tree.nodes.emplace_back();
  if (!options.by_comm) {
    if (grouped.groups.empty()) return tree;
    WeighGroup(profile, grouped, 0, weights);
    GrowGroup(profile, weights, options.direction, 0, grower, tree);
    return tree;
  }
  // The comms' nodes come first, side by side, the heaviest first.
  std::vector<std::pair<uint64_t, size_t>> order;
  for (size_t g = 0; g < grouped.groups.size(); ++g) {
    Amount amount;
    for (size_t i = grouped.starts[g]; i < grouped.starts[g + 1]; ++i) {
      const ProfileSample& sample = profile.samples()[grouped.samples[i]];
      amount += {sample.weight, sample.count};
    }
    tree.nodes[0].total += amount;
    if (amount.weight < options.min_weight) {
      tree.nodes[0].left_out += amount;
    } else {
      order.emplace_back(amount.weight, g);
    }
  }
  std::sort(order.begin(), order.end(), [&](const auto& a, const auto& b) {
    if (a.first != b.first) return a.first > b.first;
    return profile.Text(grouped.groups[a.second].comm) <
           profile.Text(grouped.groups[b.second].comm);
  });
  tree.nodes[0].first_child = 1;
  tree.nodes[0].child_count = static_cast<uint32_t>(order.size());
  for (const auto& [weight, g] : order) {
    TreeNode node;
    node.comm = grouped.groups[g].comm;
    tree.nodes.push_back(node);
  }
  for (uint32_t i = 0; i < order.size(); ++i) {
    WeighGroup(profile, grouped, order[i].second, weights);
    GrowGroup(profile, weights, options.direction, i + 1, grower, tree);
  }
  return tree;
}

std::vector<CallTree> MakeRowTrees(const Profile& profile, const Filter& filter,
                                   const FlatTable& table, std::span<const uint32_t> rows,
                                   RowGraph graph, const TreeOptions& options) {
  std::map<uint32_t, std::vector<size_t>> by_group;  // → indices into rows
  for (size_t i = 0; i < rows.size(); ++i) by_group[table.rows[rows[i]].group].push_back(i);

  const GroupedSamples grouped = GroupSamples(profile, filter, table.keys);
  const StackForest forest(profile);
  const std::vector<StackId> nearest_same = forest.NearestSame(table.key_of_frame);
  TreeGrower grower(profile, forest, options);
  StackWeights weights(profile);
  StackWeights row_weights(profile);
  std::vector<CallTree> trees(rows.size());
  for (const auto& [group, members] : by_group) {
    WeighGroup(profile, grouped, group, weights);
    RowStacks stacks(profile, table, weights, nearest_same);
    for (size_t i : members) stacks.Want(table.rows[rows[i]].frame_key);
    stacks.Collect(graph);
    for (size_t i : members) {
      CallTree& tree = trees[i];
      tree.nodes.emplace_back();
      std::vector<Cursor> cursors = stacks.Take(table.rows[rows[i]].frame_key);
      if (graph == RowGraph::kCallers || graph == RowGraph::kSelfCallers) {
        grower.GrowUp(tree, 0, std::move(cursors));
        continue;
      }
      std::vector<StackId> roots;
      const bool whole = graph == RowGraph::kSelfPaths;
      if (whole) {
        row_weights.Clear();
        for (const Cursor& cursor : cursors) row_weights.Add(cursor.stack, cursor.amount);
        row_weights.SumUp();
        roots = RootsOf(profile, row_weights);
      } else {
        roots.reserve(cursors.size());
        for (const Cursor& cursor : cursors) roots.push_back(cursor.stack);
      }
      grower.GrowDown(tree, 0, roots, whole ? row_weights : weights);
    }
  }
  return trees;
}

}  // namespace stackreel::profile
