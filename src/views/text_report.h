// profile → the report as text.
#pragma once

#include <string>

#include "profile/call_tree.h"
#include "profile/profile.h"

namespace stackreel::views {

struct ReportOptions {
  std::vector<profile::SortKey> keys = {profile::SortKey::kComm, profile::SortKey::kDso,
                                        profile::SortKey::kSym};
  profile::Filter filter;
  bool children = true;
  bool graph = true;
  profile::TreeDirection graph_direction = profile::TreeDirection::kCaller;
  double percent_limit = 0.5;  // rows and branches below are left out (and counted)
  size_t max_rows = 0;         // 0: all
  bool color = false;
  bool header = false, stats = false;
  size_t width = 0;  // columns; 0: not cut
};
std::string TextReport(const profile::Profile& profile, const ReportOptions& options);
// The same as one JSON object, "schema": "stackreel.report/1".
std::string JsonReport(const profile::Profile& profile, const ReportOptions& options);

}  // namespace stackreel::views
