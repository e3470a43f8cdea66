#include <fmt/format.h>

#include <string>

#include "views/report_section.h"
#include "views/text_escape.h"
#include "views/text_report.h"

namespace stackreel::views {
namespace {

// RFC 4180, section 2: quoted where it holds a comma, a quote or a line break.
std::string CsvField(std::string_view text) {
  std::string valid = ValidUtf8(text);
  if (valid.find_first_of(",\"\r\n") == std::string::npos) return valid;
  std::string quoted = "\"";
  for (char c : valid) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string CsvReport(const profile::Profile& profile, const ReportOptions& options) {
  std::string out = options.children ? "event,children_percent,self_percent,children_samples,"
                                       "self_samples,children_weight,self_weight"
                                     : "event,self_percent,self_samples,self_weight";
  for (profile::SortKey key : options.keys) out += fmt::format(",{}", SortKeyName(key));
  out += '\n';
  ReportOptions flat = options;
  flat.graph = CallGraph::kNone;
  for (const ReportSection& section : MakeSections(profile, flat)) {
    for (uint32_t index : section.shown) {
      const profile::FlatRow& row = section.table.rows[index];
      const double self = Percent(row.self.weight, section.denominator);
      out += CsvField(section.event_name);
      if (options.children) {
        out += fmt::format(
            ",{:.4f},{:.4f},{},{},{},{}", Percent(row.children.weight, section.denominator), self,
            row.children.samples, row.self.samples, row.children.weight, row.self.weight);
      } else {
        out += fmt::format(",{:.4f},{},{}", self, row.self.samples, row.self.weight);
      }
      for (profile::SortKey key : options.keys) {
        out += ',' + CsvField(RowText(profile, section.table, row, key));
      }
      out += '\n';
    }
  }
  return out;
}

}  // namespace stackreel::views
