#include "views/report_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace stackreel::views {
namespace {

using profile::FlatRow;
using profile::Frame;
using profile::Profile;
using profile::RowGraph;

bool RowPasses(const Profile& profile, const FlatRow& row, const ReportOptions& options) {
  if (options.row_dsos.empty() && options.row_symbols.empty()) return true;
  if (row.frame == profile::kNoFrame) return false;
  const Frame& frame = profile.frames()[row.frame];
  return (options.row_dsos.empty() ||
          profile::MatchesAny(profile.Text(frame.module), options.row_dsos)) &&
         (options.row_symbols.empty() ||
          profile::MatchesAny(profile.Text(frame.function), options.row_symbols));
}

uint64_t WeightOf(const Profile& profile, const profile::Filter& filter) {
  uint64_t weight = 0;
  for (uint32_t i : SelectSamples(profile, filter)) weight += profile.samples()[i].weight;
  return weight;
}

RowGraph GraphOf(const ReportOptions& options) {
  if (options.children) {
    return options.graph == CallGraph::kCaller ? RowGraph::kCallees : RowGraph::kCallers;
  }
  return options.graph == CallGraph::kCaller ? RowGraph::kSelfPaths : RowGraph::kSelfCallers;
}

// A weight is below the limit if its percentage is.
uint64_t WeightAt(double percent, uint64_t whole) {
  const double weight = std::ceil(percent / 100 * static_cast<double>(whole));
  return weight <= 0 ? 0 : static_cast<uint64_t>(weight);
}

// Deeper graphs are cut, so that a recursion thousands of frames deep does not fill the report.
constexpr uint32_t kGraphDepth = 256;

ReportSection MakeSection(const Profile& profile, const ReportOptions& options, uint32_t event) {
  ReportSection section;
  section.event = event;
  section.event_name = event < profile.facts.events.size() ? profile.facts.events[event]
                                                           : fmt::format("event {}", event);
  profile::Filter filter = options.filter;
  filter.events = {event};
  section.table = MakeFlatTable(profile, filter, options.keys, options.children);
  section.total = section.table.total;

  std::vector<uint32_t> passing;
  uint64_t passing_self = 0;
  for (uint32_t i = 0; i < section.table.rows.size(); ++i) {
    if (!RowPasses(profile, section.table.rows[i], options)) continue;
    passing.push_back(i);
    passing_self += section.table.rows[i].self.weight;
  }
  profile::Filter all_comms = filter;
  all_comms.comms.clear();
  section.denominator = options.percentage_of_rows ? passing_self : WeightOf(profile, all_comms);

  const uint64_t limit = WeightAt(options.percent_limit, section.denominator);
  for (uint32_t i : passing) {
    const FlatRow& row = section.table.rows[i];
    const uint64_t weight = options.children ? row.children.weight : row.self.weight;
    if (weight < limit || (options.max_rows != 0 && section.shown.size() >= options.max_rows)) {
      ++section.hidden_rows;
      section.hidden_self += row.self.weight;
    } else {
      section.shown.push_back(i);
    }
  }
  if (options.graph != CallGraph::kNone) {
    profile::TreeOptions tree;
    tree.min_weight = WeightAt(options.graph_percent_limit, section.denominator);
    tree.max_depth = kGraphDepth;
    section.trees =
        MakeRowTrees(profile, filter, section.table, section.shown, GraphOf(options), tree);
  }
  return section;
}

}  // namespace

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

std::string PercentText(uint64_t part, uint64_t whole) {
  return fmt::format("{:.2f}%", Percent(part, whole));
}

std::vector<ReportSection> MakeSections(const Profile& profile, const ReportOptions& options) {
  std::set<uint32_t> events;
  for (uint32_t i : SelectSamples(profile, options.filter)) {
    events.insert(profile.samples()[i].event);
  }
  std::vector<ReportSection> sections;
  sections.reserve(events.size());
  for (uint32_t event : events) sections.push_back(MakeSection(profile, options, event));
  return sections;
}

}  // namespace stackreel::views
