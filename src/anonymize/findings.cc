#include "anonymize/findings.h"

#include <algorithm>

namespace stackreel::anonymize {
namespace {

// What was given away tells more than what is not as it should be.
int RankOf(FindingKind kind) {
  switch (kind) {
    case FindingKind::kOriginalValue:
      return 0;
    case FindingKind::kPayload:
      return 1;
    case FindingKind::kText:
      return 2;
    case FindingKind::kEventConfig:
      return 3;
    case FindingKind::kAddressOutside:
      return 4;
    case FindingKind::kDifference:
      return 5;
    case FindingKind::kKey:
    case FindingKind::kPerf:
      break;
  }
  return 6;
}

}  // namespace

void Findings::Add(const Finding& finding, uint64_t count) {
  if (verdict_.findings.size() < kept_) verdict_.findings.push_back(finding);
  verdict_.found += count;
  const auto [group, is_new] =
      groups_.try_emplace({finding.kind, finding.record, finding.field}, verdict_.groups.size());
  if (is_new) verdict_.groups.push_back({finding, 0});
  verdict_.groups[group->second].count += count;
}

void Findings::Finish() {
  groups_.clear();
  std::ranges::stable_sort(verdict_.groups, [](const FindingGroup& a, const FindingGroup& b) {
    const int rank_a = RankOf(a.first.kind), rank_b = RankOf(b.first.kind);
    return rank_a != rank_b ? rank_a < rank_b : a.count > b.count;
  });
}

}  // namespace stackreel::anonymize
