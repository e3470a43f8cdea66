#include "views/call_graph_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "views/report_section.h"
#include "views/text_escape.h"

namespace stackreel::views {
namespace {

using profile::CallTree;
using profile::TreeNode;

constexpr std::string_view kIndent = "            ";
// Lines below a branch begin under its name, or where columns are scarce, a little to the right.
constexpr size_t kStep = 10;
constexpr size_t kNarrowStep = 2;
constexpr size_t kWideTerminal = 160;
// Branches in branches are a step wider each; deeper ones are told as one sum.
constexpr size_t kMaxBranches = 30;

class GraphText {
 public:
  GraphText(std::string& out, const profile::Profile& profile, const CallTree& tree,
            const CallGraphTextOptions& options)
      : out_(out),
        profile_(profile),
        tree_(tree),
        options_(options),
        step_(options.width == 0 || options.width >= kWideTerminal ? kStep : kNarrowStep) {}

  void Append() {
    const TreeNode& root = tree_.nodes[0];
    // A row that is alone has nothing to show that it does not show itself.
    if (root.child_count == 0 || (options_.row_is_function && tree_.nodes.size() == 2)) return;
    if (GoesOnAlone(root)) {
      Line(kIndent, "|");
      pending_.push_back(
          {root.first_child, std::string(kIndent) + "---", std::string(kIndent) + "   ", 0, ""});
    } else {
      Branch(root, std::string(kIndent), 0);
    }
    // Depth first with our own stack: a call tree may be deeper than ours.
    while (!pending_.empty()) {
      const Item item = std::move(pending_.back());
      pending_.pop_back();
      if (!item.text.empty()) {
        Line(item.first_prefix, item.text);
      } else {
        AppendChain(item);
      }
    }
    out_ += '\n';
  }

 private:
  struct Item {
    uint32_t node;
    std::string first_prefix;  // before its own name
    std::string prefix;        // before the lines below it
    size_t branches;
    std::string text;  // not empty: a line that is no node
  };

  void Line(std::string_view prefix, std::string_view text) {
    std::string line = std::string(prefix) + std::string(text);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out_ += options_.width == 0 ? line : CutTo(line, options_.width);
    out_ += '\n';
  }

  bool GoesOnAlone(const TreeNode& node) const {
    return node.child_count == 1 &&
           node.self.weight + node.left_out.weight < std::max<uint64_t>(options_.min_weight, 1);
  }

  std::string Name(const TreeNode& node) const {
    const profile::Frame& frame = profile_.frames()[node.frame];
    std::string name = FrameName(profile_, frame);
    if (frame.function == 0) name += fmt::format(" [{}]", profile_.Text(frame.module));
    return Printable(name);
  }

  void AppendChain(const Item& item) {
    uint32_t at = item.node;
    Line(item.first_prefix, Name(tree_.nodes[at]));
    while (GoesOnAlone(tree_.nodes[at])) {
      at = tree_.nodes[at].first_child;
      Line(item.prefix, Name(tree_.nodes[at]));
    }
    Branch(tree_.nodes[at], item.prefix, item.branches);
  }

  // Puts what follows `node` on the stack, last first, with the connecting lines between.
  void Branch(const TreeNode& node, const std::string& prefix, size_t branches) {
    struct Part {
      uint32_t node;
      uint64_t weight;
      std::string text;
    };
    std::vector<Part> parts;
    if (branches < kMaxBranches) {
      for (uint32_t i = 0; i < node.child_count; ++i) {
        const uint32_t child = node.first_child + i;
        parts.push_back({child, tree_.nodes[child].total.weight, ""});
      }
    }
    uint64_t rest = node.left_out.weight;
    if (branches >= kMaxBranches) rest = node.total.weight - node.self.weight;
    const bool told = branches >= kMaxBranches || !parts.empty();
    if (told && rest > 0 && rest >= options_.min_weight) parts.push_back({0, rest, "[...]"});
    for (size_t i = parts.size(); i-- > 0;) {
      const Part& part = parts[i];
      const bool last = i + 1 == parts.size();
      const std::string lead = fmt::format("{}{}--{}--", prefix, last ? ' ' : '|',
                                           PercentText(part.weight, options_.whole));
      const std::string below = prefix + (last ? ' ' : '|') + std::string(step_, ' ');
      pending_.push_back({part.node, lead, below, branches + 1, part.text});
      pending_.push_back({0, prefix, "", 0, "|"});
    }
  }

  std::string& out_;
  const profile::Profile& profile_;
  const CallTree& tree_;
  const CallGraphTextOptions& options_;
  size_t step_;
  std::vector<Item> pending_;
};

}  // namespace

void AppendCallGraph(std::string& out, const profile::Profile& profile, const CallTree& tree,
                     const CallGraphTextOptions& options) {
  GraphText(out, profile, tree, options).Append();
}

}  // namespace stackreel::views
