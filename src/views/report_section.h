// What a report shows of one event, whatever it is written as.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profile/call_tree.h"
#include "profile/flat_table.h"
#include "profile/profile.h"
#include "views/text_report.h"

namespace stackreel::views {

struct ReportSection {
  uint32_t event = 0;
  std::string event_name;
  profile::Amount total;     // of the samples that options.filter lets through
  uint64_t denominator = 0;  // weight that is 100 %
  profile::FlatTable table;
  std::vector<uint32_t> shown;           // rows of the table, in their order
  std::vector<profile::CallTree> trees;  // one for each shown row, or none at all
  size_t hidden_rows = 0;                // by percent_limit or max_rows
  uint64_t hidden_self = 0;              // the sum of their own weights
};

// One section for each event that has samples and passes the filter.
std::vector<ReportSection> MakeSections(const profile::Profile& profile,
                                        const ReportOptions& options);

// part / whole in percent; 0 of 0 is 0.
double Percent(uint64_t part, uint64_t whole);
// "99.90%".
std::string PercentText(uint64_t part, uint64_t whole);

}  // namespace stackreel::views
