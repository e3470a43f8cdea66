#include <fmt/format.h>

#include <string>

#include <nlohmann/json.hpp>

#include "views/report_section.h"
#include "views/text_escape.h"
#include "views/text_report.h"

namespace stackreel::views {
namespace {

using Json = nlohmann::ordered_json;
using profile::Amount;
using profile::CallTree;
using profile::Frame;
using profile::Profile;
using profile::SortKey;

Json Text(std::string_view text) { return ValidUtf8(text); }

Json AmountJson(const Amount& amount, uint64_t whole) {
  return {{"samples", amount.samples},
          {"weight", amount.weight},
          {"percent", Percent(amount.weight, whole)}};
}

Json FactsJson(const Profile::Facts& facts) {
  Json ends = Json::object();
  for (const auto& [end, count] : facts.stack_ends) ends[ValidUtf8(end)] = count;
  Json modules = Json::array();
  for (const auto& [name, unresolved] : facts.unresolved_modules) {
    modules.push_back(
        {{"module", Text(name)}, {"frames", unresolved.frames}, {"why", Text(unresolved.why)}});
  }
  Json json = {{"samples", facts.samples},
               {"lost", facts.lost},
               {"user_stacks", facts.user_stacks},
               {"complete_stacks", facts.complete_stacks},
               {"stack_ends", ends},
               {"frames", facts.frames},
               {"unresolved_frames", facts.unresolved_frames},
               {"unresolved_modules", modules}};
  if (!facts.masks.empty()) {
    Json masks = Json::array();
    for (const auto& [mask, samples] : facts.masks) {
      masks.push_back({{"insn_mask", fmt::format("{:#x}", mask.first)},
                       {"source", mask.second},
                       {"samples", samples}});
    }
    json["authentication_masks"] = std::move(masks);
  }
  json["unfinished"] = facts.unfinished;
  json["damage"] = facts.damage.empty() ? Json(nullptr) : Text(facts.damage);
  return json;
}

Json FrameJson(const Profile& profile, const Frame& frame) {
  Json json = {{"function", Text(profile.Text(frame.function))},
               {"module", Text(profile.Text(frame.module))}};
  if (frame.function == 0) json["address"] = frame.address;
  if (frame.kernel) json["kernel"] = true;
  if (frame.inlined) json["inlined"] = true;
  if (frame.jit) json["jit"] = true;
  if (frame.marker) json["marker"] = true;
  return json;
}

// Nodes as a flat list, so that no reader needs a stack as deep as the tree: "parent" is the index
// of the node above, null for the topmost.
Json TreeJson(const Profile& profile, const CallTree& tree, uint64_t whole) {
  Json nodes = Json::array();
  for (size_t i = 1; i < tree.nodes.size(); ++i) {
    const profile::TreeNode& node = tree.nodes[i];
    Json json = FrameJson(profile, profile.frames()[node.frame]);
    json["parent"] = node.parent == 0 ? Json(nullptr) : Json(node.parent - 1);
    json["total"] = AmountJson(node.total, whole);
    json["self"] = AmountJson(node.self, whole);
    if (node.left_out.samples > 0) json["left_out"] = AmountJson(node.left_out, whole);
    nodes.push_back(std::move(json));
  }
  return nodes;
}

Json RowJson(const Profile& profile, const ReportSection& section, size_t i) {
  const profile::FlatRow& row = section.table.rows[section.shown[i]];
  const profile::SampleGroup& group = section.table.groups[row.group];
  const auto number = [](uint32_t n) { return n == profile::kNoNumber ? Json(nullptr) : Json(n); };
  Json json = Json::object();
  for (SortKey key : section.table.keys) {
    switch (key) {
      case SortKey::kPid:
        json["pid"] = number(group.pid);
        break;
      case SortKey::kTid:
        json["tid"] = number(group.tid);
        break;
      case SortKey::kCpu:
        json["cpu"] = number(group.cpu);
        break;
      case SortKey::kSym:
        json["sym"] = row.frame == profile::kNoFrame
                          ? Json(nullptr)
                          : FrameJson(profile, profile.frames()[row.frame]);
        break;
      default:
        json[SortKeyName(key)] = Text(RowText(profile, section.table, row, key));
    }
  }
  if (section.table.children) json["children"] = AmountJson(row.children, section.denominator);
  json["self"] = AmountJson(row.self, section.denominator);
  if (i < section.trees.size()) {
    json["graph"] = TreeJson(profile, section.trees[i], section.denominator);
  }
  return json;
}

}  // namespace

std::string JsonReport(const Profile& profile, const ReportOptions& options) {
  Json json = {{"schema", "stackreel.report/1"}};
  json["facts"] = FactsJson(profile.facts);
  if (options.header) {
    Json header = Json::array();
    for (const std::string& line : profile.facts.header) header.push_back(Text(line));
    json["header"] = header;
  }
  if (options.stats) {
    Json counters = Json::object();
    for (const auto& [name, n] : profile.facts.counters.values()) counters[ValidUtf8(name)] = n;
    json["counters"] = counters;
  }
  json["events"] = Json::array();
  for (const ReportSection& section : MakeSections(profile, options)) {
    Json keys = Json::array();
    for (SortKey key : options.keys) keys.push_back(SortKeyName(key));
    Json event = {{"event", Text(section.event_name)},
                  {"samples", section.total.samples},
                  {"weight", section.total.weight},
                  {"weight_of_100_percent", section.denominator},
                  {"sort", keys},
                  {"graph", options.graph == CallGraph::kNone
                                ? Json(nullptr)
                                : Json(options.graph == CallGraph::kCaller ? "caller" : "callee")},
                  {"hidden_rows", section.hidden_rows},
                  {"hidden_self_weight", section.hidden_self},
                  {"rows", Json::array()}};
    for (size_t i = 0; i < section.shown.size(); ++i) {
      event["rows"].push_back(RowJson(profile, section, i));
    }
    json["events"].push_back(std::move(event));
  }
  return json.dump() + "\n";
}

}  // namespace stackreel::views
