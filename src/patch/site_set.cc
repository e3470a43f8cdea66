#include "patch/site_set.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "base/check.h"

namespace stackreel::patch {

std::expected<size_t, Refusal> SiteSet::Add(const Site& site, SiteState state) {
  CHECK(CheckSite(site));
  if (!IsFree(site)) return std::unexpected(Refusal::kOverlap);
  by_begin_.emplace(site.begin(), sites_.size());
  sites_.push_back(std::make_unique<const Site>(site));
  states_.push_back(state);
  return sites_.size() - 1;
}

bool SiteSet::IsFree(const Site& site) const {
  const auto after = by_begin_.lower_bound(site.begin());
  if (after != by_begin_.end() && after->first < site.end()) return false;
  return after == by_begin_.begin() || sites_[std::prev(after)->second]->end() <= site.begin();
}

void SiteSet::Forget(size_t i) {
  const auto at = by_begin_.find(sites_[i]->begin());
  if (at != by_begin_.end() && at->second == i) by_begin_.erase(at);
  states_[i] = SiteState::kGone;
}

bool SiteSet::Revive(size_t i) {
  const auto at = by_begin_.find(sites_[i]->begin());
  const bool is_known = at != by_begin_.end() && at->second == i;
  if (!is_known && !IsFree(*sites_[i])) return false;
  if (!is_known) by_begin_.emplace(sites_[i]->begin(), i);
  states_[i] = SiteState::kOriginal;
  return true;
}

size_t SiteSet::Count(SiteState state) const {
  return static_cast<size_t>(std::ranges::count(states_, state));
}

namespace {
// What one batch came to, and then another.
Outcome Both(Outcome first, Outcome second) {
  if (!first.error) first.error = std::move(second.error);
  first.refused.insert(first.refused.end(), second.refused.begin(), second.refused.end());
  return first;
}
bool IsLeftHalfway(SiteState state) {
  return state == SiteState::kAsideLeft || state == SiteState::kStuck;
}
}  // namespace

Outcome SiteSet::Patch(std::span<const size_t> which, const Process& process, SwitchMode mode) {
  std::vector<size_t> batch;
  std::vector<size_t> halfway;
  for (const size_t i : which) {
    if (IsLeftHalfway(states_[i])) halfway.push_back(i);
    if (states_[i] != SiteState::kPatched) batch.push_back(i);
  }
  Outcome outcome = Run(std::move(halfway), Direction::kUnpatch, process, mode);
  return Both(std::move(outcome), Run(std::move(batch), Direction::kPatch, process, mode));
}

Outcome SiteSet::Unpatch(std::span<const size_t> which, const Process& process, SwitchMode mode) {
  std::vector<size_t> batch;
  for (const size_t i : which) {
    if (states_[i] != SiteState::kOriginal && states_[i] != SiteState::kDeferred) {
      batch.push_back(i);
    } else {
      states_[i] = SiteState::kOriginal;  // nobody wants it patched any more
    }
  }
  return Run(std::move(batch), Direction::kUnpatch, process, mode);
}

Outcome SiteSet::Retry(const Process& process, SwitchMode mode) {
  std::vector<size_t> deferred;
  std::vector<size_t> left;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == SiteState::kDeferred) deferred.push_back(i);
    if (IsLeftHalfway(states_[i])) left.push_back(i);
  }
  Outcome outcome = Run(std::move(left), Direction::kUnpatch, process, mode);
  return Both(std::move(outcome), Run(std::move(deferred), Direction::kPatch, process, mode));
}

Outcome SiteSet::Recover(const Process& process, SwitchMode mode) {
  std::vector<size_t> all(sites_.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  return Run(std::move(all), Direction::kUnpatch, process, mode);
}

std::vector<TrapEntry> SiteSet::Standing(std::span<const size_t> batch) const {
  std::vector<TrapEntry> entries;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (std::ranges::binary_search(batch, i)) continue;
    if (const auto entry = StandingEntry(*sites_[i], states_[i])) entries.push_back(*entry);
  }
  std::ranges::sort(entries, {}, &TrapEntry::address);
  return entries;
}

Outcome SiteSet::Run(std::vector<size_t> batch, Direction direction, const Process& process,
                     SwitchMode mode) {
  Outcome outcome;
  std::ranges::sort(batch);
  batch.erase(std::ranges::unique(batch).begin(), batch.end());
  std::erase_if(batch, [&](size_t i) {
    if (states_[i] == SiteState::kGone) return true;
    const auto refusal = RefusedBy(*sites_[i], mode);
    // What is patched is unpatched in whichever way there is: it is one store of one byte.
    if (!refusal || (direction == Direction::kUnpatch && refusal == Refusal::kTrapBlocked)) {
      return false;
    }
    outcome.refused.emplace_back(i, *refusal);
    return true;
  });
  if (batch.empty()) return outcome;
  std::vector<TrapEntry> standing = Standing(batch);
  std::ranges::sort(batch, {}, [&](size_t i) { return sites_[i]->begin(); });
  std::vector<const Site*> sites;
  std::vector<SiteState> known;
  for (const size_t i : batch) {
    sites.push_back(sites_[i].get());
    known.push_back(states_[i]);
  }
  Execution execution(std::move(sites), std::move(known), direction, mode, std::move(standing));
  Execute(execution, process);
  for (size_t i = 0; i < batch.size(); ++i) states_[batch[i]] = execution.states()[i];
  outcome.error = execution.error();
  return outcome;
}

}  // namespace stackreel::patch
