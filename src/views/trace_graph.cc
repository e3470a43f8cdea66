#include "views/trace_graph.h"

#include <fmt/format.h>

#include <vector>

#include "profile/call_tree.h"
#include "views/json_text.h"
#include "views/trace_text_pieces.h"

namespace stackreel::views {

using profile::CallTree;
using profile::TreeNode;

namespace {

CallTree MakeTree(const profile::Profile& profile, const TraceGraphOptions& options) {
  profile::TreeOptions tree;
  tree.max_depth = options.max_depth;
  uint64_t all = 0;
  for (const profile::ProfileSample& sample : profile.samples()) all += sample.weight;
  tree.min_weight = static_cast<uint64_t>(static_cast<double>(all) * options.min_percent / 100);
  return MakeCallTree(profile, {}, tree);
}

// Calls visit(index, depth) for each node but the root, callees after their caller, until one
// fails.
template <typename Visit>
Status Walk(const CallTree& tree, Visit visit) {
  std::vector<std::pair<uint32_t, uint32_t>> stack;  // node, depth
  const auto push = [&](const TreeNode& node, uint32_t depth) {
    for (uint32_t i = node.child_count; i > 0; --i)
      stack.emplace_back(node.first_child + i - 1, depth);
  };
  if (!tree.nodes.empty()) push(tree.nodes[0], 0);
  while (!stack.empty()) {
    const auto [index, depth] = stack.back();
    stack.pop_back();
    TRY(visit(index, depth));
    push(tree.nodes[index], depth + 1);
  }
  return {};
}

std::string_view NameOf(const profile::Profile& profile, const TreeNode& node) {
  return profile.Text(profile.frames()[node.frame].function);
}

}  // namespace

Status TraceGraphText(const profile::Profile& profile, const TraceGraphOptions& options,
                      ByteSink& out) {
  const CallTree tree = MakeTree(profile, options);
  TextStream stream(out);
  std::string& text = stream.text();
  text = "#     TOTAL        SELF       CALLS   FUNCTION\n";
  TRY(Walk(tree, [&](uint32_t index, uint32_t depth) {
    const TreeNode& node = tree.nodes[index];
    AppendDuration(text, node.total.weight);
    text += ' ';
    AppendDuration(text, node.self.weight);
    text += ' ';
    AppendNumber(text, node.self.samples, 11);
    text += " | ";
    text.append(2 * size_t{depth}, ' ');
    text += NameOf(profile, node);
    text += '\n';
    return stream.Pass();
  }));
  return stream.Flush();
}

Status TraceGraphJson(const profile::Profile& profile, const TraceGraphOptions& options,
                      ByteSink& out) {
  const CallTree tree = MakeTree(profile, options);
  TextStream stream(out);
  std::string& text = stream.text();
  text = "{\"schema\":\"stackreel.trace_graph\",\"version\":1,\"nodes\":[";
  std::vector<int64_t> numbers(tree.nodes.size(), -1);
  int64_t next = 0;
  TRY(Walk(tree, [&](uint32_t index, uint32_t depth) {
    const TreeNode& node = tree.nodes[index];
    numbers[index] = next;
    text +=
        fmt::format("{}\n{{\"parent\":{},\"depth\":{},\"calls\":{},\"total_ns\":{},\"self_ns\":{},",
                    next == 0 ? "" : ",", numbers[node.parent], depth, node.self.samples,
                    node.total.weight, node.self.weight);
    ++next;
    text += "\"function\":";
    AppendJsonString(text, NameOf(profile, node));
    text += ",\"module\":";
    AppendJsonString(text, profile.Text(profile.frames()[node.frame].module));
    text += '}';
    return stream.Pass();
  }));
  text += "\n]}\n";
  return stream.Flush();
}

}  // namespace stackreel::views
