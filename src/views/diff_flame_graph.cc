#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "profile/call_tree.h"
#include "profile/diff.h"
#include "views/flame_graph.h"
#include "views/flame_layout.h"
#include "views/flame_svg.h"
#include "views/report_section.h"
#include "views/text_escape.h"

namespace stackreel::views {
namespace {

using profile::Amount;
using profile::CallTree;
using profile::Profile;
using profile::TreeNode;

// A node of both trees; `node` is 0 where a side does not have it (the root is never a child).
struct DiffNode {
  std::array<uint32_t, 2> node = {};
  uint32_t depth = 0;
  double start = 0;
  std::string name;
};

class DiffPicture {
 public:
  DiffPicture(const Profile& joined, const FlameGraphOptions& options)
      : profile_(joined), options_(options) {
    profile::TreeOptions tree;
    tree.by_comm = !options.reversed;
    tree.direction =
        options.reversed ? profile::TreeDirection::kCallers : profile::TreeDirection::kCallees;
    tree.merge_unresolved = true;
    for (uint32_t side = 0; side < 2; ++side) {
      profile::Filter filter;
      filter.events = {side};
      trees_[side] = MakeCallTree(joined, filter, tree);
      totals_[side] = trees_[side].nodes[0].total;
    }
  }

  void Draw(FlameSvg& svg) {
    std::vector<DiffNode> pending;
    pending.push_back({{0, 0}, 0, 0, "all"});
    while (!pending.empty()) {
      const DiffNode node = std::move(pending.back());
      pending.pop_back();
      svg.boxes.push_back(Box(node));
      svg.depth = std::max(svg.depth, node.depth + 1);
      std::vector<DiffNode> children = Children(node);
      pending.insert(pending.end(), std::make_move_iterator(children.rbegin()),
                     std::make_move_iterator(children.rend()));
    }
    svg.total = kWhole;
  }
  // The sum of the boxes that were too narrow, as a share.
  [[nodiscard]] double left_out() const { return left_out_; }
  [[nodiscard]] const Amount& total(size_t side) const { return totals_[side]; }

 private:
  // Widths are shares of this: exact enough for any screen, and whole numbers in the file.
  static constexpr uint64_t kWhole = 1'000'000'000;

  const TreeNode* NodeOf(const DiffNode& node, size_t side) const {
    if (node.node[side] == 0 && node.depth > 0) return nullptr;
    return &trees_[side].nodes[node.node[side]];
  }
  Amount AmountOf(const DiffNode& node, size_t side) const {
    const TreeNode* tree_node = NodeOf(node, side);
    return tree_node == nullptr ? Amount{} : tree_node->total;
  }
  double ShareOf(const DiffNode& node, size_t side) const {
    return Percent(AmountOf(node, side).weight, totals_[side].weight) / 100;
  }
  double WidthOf(const DiffNode& node) const { return (ShareOf(node, 0) + ShareOf(node, 1)) / 2; }

  // The children of both sides, matched by name and module.
  std::vector<DiffNode> Children(const DiffNode& node) {
    struct Entry {
      std::string name;
      std::string_view module;
      FlameKind kind;
      size_t side;
      uint32_t child;
      [[nodiscard]] auto Key() const { return std::tie(name, module, kind); }
    };
    std::vector<Entry> entries;
    for (size_t side = 0; side < 2; ++side) {
      const TreeNode* parent = NodeOf(node, side);
      if (parent == nullptr) continue;
      for (uint32_t i = 0; i < parent->child_count; ++i) {
        const uint32_t child = parent->first_child + i;
        const TreeNode& at = trees_[side].nodes[child];
        const std::string_view module = at.frame == profile::kNoFrame
                                            ? std::string_view()
                                            : profile_.Text(profile_.frames()[at.frame].module);
        entries.push_back({FlameName(profile_, at), module, KindOf(profile_, at), side, child});
      }
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.Key() < b.Key(); });
    std::vector<DiffNode> children;
    double start = node.start;
    for (size_t i = 0; i < entries.size();) {
      DiffNode child;
      child.depth = node.depth + 1;
      child.name = entries[i].name;
      const size_t first = i;
      for (; i < entries.size() && entries[i].Key() == entries[first].Key(); ++i) {
        child.node[entries[i].side] = entries[i].child;
      }
      child.start = start;
      const double width = WidthOf(child);
      if (width * 100 < options_.min_percent) {
        left_out_ += width;
        continue;
      }
      start += width;
      children.push_back(std::move(child));
    }
    return children;
  }

  // Half the difference that sampling alone makes in 95 of 100 cases: a share p of n samples has
  // the variance p (1 - p) / n.
  bool IsNoise(const DiffNode& node) const {
    double variance = 0;
    for (size_t side = 0; side < 2; ++side) {
      const double n = static_cast<double>(std::max<uint64_t>(totals_[side].samples, 1));
      // One sample more and one less keep a share of none or all from being certain.
      const double p = (static_cast<double>(AmountOf(node, side).samples) + 1) / (n + 2);
      variance += p * (1 - p) / n;
    }
    return std::abs(ShareOf(node, 1) - ShareOf(node, 0)) < 1.96 * std::sqrt(variance);
  }

  // Vermilion for more, blue for less (Okabe and Ito's pair), the stronger the larger the change
  // against the mean; white for none.
  std::string ColorOf(const DiffNode& node) const {
    const double before = ShareOf(node, 0);
    const double after = ShareOf(node, 1);
    if (node.depth == 0 || before + after <= 0 || IsNoise(node)) return "#f2f2f2";
    const double change = (after - before) / (after + before);  // -1: gone, 1: new
    const double strength = 0.25 + 0.75 * std::abs(change);
    return change > 0 ? HslColor(24, 0.95, 0.93 - 0.35 * strength)
                      : HslColor(205, 0.80, 0.93 - 0.35 * strength);
  }

  SvgBox Box(const DiffNode& node) const {
    SvgBox box;
    box.start = static_cast<uint64_t>(node.start * kWhole);
    box.weight = static_cast<uint64_t>(WidthOf(node) * kWhole);
    if (node.depth == 0) box.weight = kWhole;
    box.depth = node.depth;
    box.name = node.name;
    box.fill = ColorOf(node);
    const double before = 100 * ShareOf(node, 0);
    const double after = 100 * ShareOf(node, 1);
    box.tooltip = fmt::format("{:.2f}% → {:.2f}% ({:+.2f} points); {} → {} samples{}", before,
                              after, after - before, Grouped(AmountOf(node, 0).samples),
                              Grouped(AmountOf(node, 1).samples),
                              before != after && IsNoise(node) ? "; within sampling noise" : "");
    return box;
  }

  const Profile& profile_;
  const FlameGraphOptions& options_;
  std::array<CallTree, 2> trees_;
  std::array<Amount, 2> totals_;
  double left_out_ = 0;
};

std::string SideNote(const char* name, const Profile& profile, const Amount& total) {
  const Profile::Facts& facts = profile.facts;
  return fmt::format("{}: {} samples, {} lost; {} of frames unresolved{}{}{}", name,
                     Grouped(total.samples), facts.lost == 0 ? "none" : Grouped(facts.lost),
                     PercentText(facts.unresolved_frames, facts.frames),
                     facts.unfinished ? "; unfinished, the last moments are missing" : "",
                     facts.damage.empty() ? "" : "; damaged, only a part was read: ", facts.damage);
}

}  // namespace

std::string DiffFlameGraphSvg(const Profile& before, const std::vector<uint32_t>& before_events,
                              const Profile& after, const FlameGraphOptions& options) {
  profile::Filter before_filter = options.filter;
  before_filter.events = before_events;
  const Profile joined = JoinForDiff(before, SelectSamples(before, before_filter), after,
                                     SelectSamples(after, options.filter));
  DiffPicture picture(joined, options);
  FlameSvg svg;
  svg.title = options.title;
  svg.root_on_top = options.inverted;
  svg.width = options.width;
  picture.Draw(svg);
  svg.notes = {SideNote("Before", before, picture.total(0)),
               SideNote("After", after, picture.total(1)),
               fmt::format("Width: mean of both shares. Boxes narrower than {}% left out: {:.2f}%",
                           options.min_percent, 100 * picture.left_out())};
  svg.legend = {{HslColor(205, 0.80, 0.58), "gone"},
                {HslColor(205, 0.80, 0.80), "less"},
                {"#f2f2f2", "no more than sampling noise"},
                {HslColor(24, 0.95, 0.80), "more"},
                {HslColor(24, 0.95, 0.58), "new"}};
  return WriteFlameSvg(svg);
}

}  // namespace stackreel::views
