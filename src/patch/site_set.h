// All patch sites of a process and what each is now: what outlives the batches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "patch/execute.h"
#include "patch/plan.h"
#include "patch/site.h"

namespace stackreel::patch {

// What a batch came to. `error` is that of the step that failed, if one did; the states tell what
// that meant. `refused`: sites that cannot be in a batch of this mode, as they were before.
struct Outcome {
  std::optional<Error> error;
  std::vector<std::pair<size_t, Refusal>> refused;
};

// Sites are numbered as they are added. A site that is kGone is left alone by every batch. Not for
// use by several threads at once.
class SiteSet {
 public:
  // `state` is kOriginal for what was just planned, kStuck for what another process may have left
  // (see Recover). Refused: kOverlap. The site must have passed CheckSite.
  std::expected<size_t, Refusal> Add(const Site& site, SiteState state = SiteState::kOriginal);

  [[nodiscard]] size_t size() const { return sites_.size(); }
  [[nodiscard]] const Site& site(size_t i) const { return *sites_[i]; }
  [[nodiscard]] SiteState state(size_t i) const { return states_[i]; }
  [[nodiscard]] size_t Count(SiteState state) const;

  // Patches those of `which` that are not patched, unpatches those that are not original; in one
  // batch (and one before it for those that are halfway). Numbers may repeat.
  Outcome Patch(std::span<const size_t> which, const Process& process, SwitchMode mode);
  Outcome Unpatch(std::span<const size_t> which, const Process& process, SwitchMode mode);
  // Another try for every site that threads stood in the way of, or that is stuck: patches what is
  // kDeferred, unpatches what is kAsideLeft or kStuck. Returns the first error.
  Outcome Retry(const Process& process, SwitchMode mode);
  // Unpatches all sites, whatever state memory is in: for whoever comes after a tracer that died.
  Outcome Recover(const Process& process, SwitchMode mode);

  // The module that the site was in is not mapped any more: what lies there now is no concern of
  // ours, and other sites may be added there. Its state is kGone. Not for a site that is kStuck.
  void Forget(size_t i);
  // The same module is mapped at the same place again, so that the site is kOriginal. False if
  // other sites are there by now.
  bool Revive(size_t i);

  // Entries of the traps that stand at sites not in `batch` (ascending).
  [[nodiscard]] std::vector<TrapEntry> Standing(std::span<const size_t> batch) const;

 private:
  [[nodiscard]] bool IsFree(const Site& site) const;
  Outcome Run(std::vector<size_t> batch, Direction direction, const Process& process,
              SwitchMode mode);

  std::vector<std::unique_ptr<const Site>> sites_;  // where they are, they stay
  std::vector<SiteState> states_;
  std::map<Avma, size_t> by_begin_;
};

}  // namespace stackreel::patch
