// profile → the report as text, JSON or CSV.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "profile/call_tree.h"
#include "profile/flat_table.h"
#include "profile/profile.h"

namespace stackreel::views {

// What is below a row, by perf's names: kCaller begins with the caller and goes down to what it
// calls, kCallee begins with the callee and goes up to what calls it.
enum class CallGraph : uint8_t { kNone, kCaller, kCallee };

// One column of the text.
struct ReportColumn {
  enum class Kind : uint8_t { kChildren, kSelf, kSamples, kWeight, kKey };
  Kind kind = Kind::kSelf;
  profile::SortKey key = profile::SortKey::kSym;  // of kKey
  friend bool operator==(const ReportColumn&, const ReportColumn&) = default;
};
// perf's names of columns, "overhead,sample,period,comm,sym" and overhead_children, → columns.
// kUsage names the word that is none.
Result<std::vector<ReportColumn>> ParseReportColumns(std::string_view text);

struct ReportOptions {
  std::vector<profile::SortKey> keys = {profile::SortKey::kComm, profile::SortKey::kDso,
                                        profile::SortKey::kSym};
  // The columns of the text. Empty: the percentages, then the keys.
  std::vector<ReportColumn> columns;
  // Which samples there are. Percentages are of these, but see `percentage_of_rows`.
  profile::Filter filter;
  // Which rows are shown: patterns for what the row's comm, dso and symbol must be.
  std::vector<std::string> row_comms, row_dsos, row_symbols;
  bool percentage_of_rows = false;  // percentages are of what the shown rows' samples sum up to
  bool children = true;
  CallGraph graph = CallGraph::kCaller;
  double percent_limit = 0;          // rows below are left out (and counted)
  double graph_percent_limit = 0.5;  // branches below are left out (and their sum told)
  size_t max_rows = 0;               // 0: all
  bool color = false;
  bool header = false, stats = false;
  size_t width = 0;  // columns; 0: not cut
};
// One section an event, each with what was sampled, lost and left unresolved.
std::string TextReport(const profile::Profile& profile, const ReportOptions& options);
// What a recording says of machine, command and events, as lines of comment.
std::string HeaderText(const std::vector<std::string>& lines);
// The same as one JSON object, "schema": "stackreel.report/1".
std::string JsonReport(const profile::Profile& profile, const ReportOptions& options);
// The rows only, RFC 4180: event, children, self (percent), samples, weight, and the keys.
std::string CsvReport(const profile::Profile& profile, const ReportOptions& options);

}  // namespace stackreel::views
