// What PatchedFunctions does about sites that are planned: switches them, says so in the trace, and
// counts what became of them.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tracer/leave_target.h"
#include "tracer/patched_functions.h"
#include "tracer/target_traps.h"
#include "tracer/trace_clock.h"
#include "x86/prologue.h"

namespace stackreel::tracer {

using tracedata::PatchEvent;

Status PatchedFunctions::Log(PatchEvent::Action action, uint32_t function, std::string reason) {
  return facts_(PatchEvent{.ticks = NowTicks(),
                           .pid = target_.pid(),
                           .action = action,
                           .function = function,
                           .reason = std::move(reason)});
}

// What is refused is told of in the trace as it is by Count(): functions that somebody wants, by
// the last reason.
Status PatchedFunctions::Refuse(Function& function, std::string reason) {
  if (function.refused == reason) return {};
  function.refused = std::move(reason);
  if (!function.wanted) return {};
  return Log(PatchEvent::Action::kRefused, function.id, function.refused);
}

// Empty if it is patched, or may be later.
std::string PatchedFunctions::WhyNotPatched(const Function& function) const {
  if (!function.refused.empty() || !function.site) return function.refused;
  const patch::SiteState state = sites_.state(*function.site);
  const bool is_stuck = state == patch::SiteState::kModified || state == patch::SiteState::kStuck;
  return is_stuck ? std::string(ToString(state)) : "";
}

Status PatchedFunctions::LogPatch(std::span<const size_t> sites, PatchEvent::Action action) {
  for (const size_t i : sites) {
    const uint32_t function = sites_.site(i).function;
    if (FunctionOf(i).is_needed && !FunctionOf(i).wanted) continue;
    const bool refused = action == PatchEvent::Action::kPatched && !FunctionOf(i).refused.empty();
    if (refused) {
      TRY(Log(PatchEvent::Action::kRefused, function, FunctionOf(i).refused));
      continue;
    }
    switch (sites_.state(i)) {
      case patch::SiteState::kPatched:
      case patch::SiteState::kOriginal:
        TRY(Log(action, function, ""));
        break;
      case patch::SiteState::kDeferred:
      case patch::SiteState::kAsideLeft:
        TRY(Log(PatchEvent::Action::kDeferred, function, "a thread is inside"));
        break;
      case patch::SiteState::kModified:
      case patch::SiteState::kStuck:
      case patch::SiteState::kGone:
        TRY(Log(PatchEvent::Action::kRefused, function, std::string(ToString(sites_.state(i)))));
        break;
    }
  }
  return {};
}

patch::Outcome PatchedFunctions::Switch(patch::Direction direction, std::span<const size_t> sites) {
  const patch::Process process = process_->process();
  // One stop for both.
  std::optional<Holding> held;
  if (use_traps_ && !sites.empty()) {
    auto holding = Holding::Of(target_);
    if (!holding) return {.error = holding.error(), .refused = {}};
    held.emplace(std::move(*holding));
  }
  patch::Outcome outcome = direction == patch::Direction::kPatch
                               ? sites_.Patch(sites, process, patch::SwitchMode::kStopped)
                               : sites_.Unpatch(sites, process, patch::SwitchMode::kStopped);
  if (outcome.refused.empty() || !use_traps_) return outcome;
  std::vector<size_t> by_trap;
  by_trap.reserve(outcome.refused.size());
  for (const auto& [site, refusal] : outcome.refused) by_trap.push_back(site);
  patch::Outcome rest = SwitchByTrap(direction, by_trap);
  if (!outcome.error) outcome.error = std::move(rest.error);
  outcome.refused = std::move(rest.refused);
  return outcome;
}

// For sites that are traps, or for a moment need one: the trap protocol. The threads are held all
// the same; that they may meet a trap counts from when they are let go, be it by our end.
patch::Outcome PatchedFunctions::SwitchByTrap(patch::Direction direction,
                                              std::span<const size_t> sites) {
  const patch::Process process = process_->process();
  if (direction == patch::Direction::kUnpatch) {
    return sites_.Unpatch(sites, process, patch::SwitchMode::kTrap);
  }
  const auto why_not = WhyNoTraps(target_, agent_);
  if (!why_not) return {.error = why_not.error(), .refused = {}};
  if (!*why_not && !traps_given_up_) return sites_.Patch(sites, process, patch::SwitchMode::kTrap);
  patch::Outcome outcome;
  for (const size_t site : sites) {
    outcome.refused.emplace_back(site, patch::Refusal::kTrapBlocked);
  }
  return outcome;
}

std::vector<size_t> PatchedFunctions::TrapsInUse() const {
  std::vector<size_t> traps;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (sites_.site(i).kind != patch::SiteKind::kTrap) continue;
    if (sites_.state(i) == patch::SiteState::kPatched) traps.push_back(i);
  }
  return traps;
}

Status PatchedFunctions::TakeTrapsOut(std::span<const size_t> traps, const std::string& why) {
  PatchCounts counts;
  Take(Switch(patch::Direction::kUnpatch, traps), counts);
  for (const size_t i : traps) TRY(Refuse(FunctionOf(i), why));
  return counts.error.empty() ? Status() : Fail(ErrorKind::kIo, counts.error);
}

Status PatchedFunctions::WatchTraps() {
  const std::vector<size_t> traps = TrapsInUse();
  if (traps.empty() || !process_->traps().HasReasonForDoubt()) return {};
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  TRY_ASSIGN(const auto why_not, process_->traps().WhyNotReliable());
  return why_not ? TakeTrapsOut(traps, *why_not) : Status();
}

Status PatchedFunctions::GiveUpTraps(const std::string& why) {
  traps_given_up_ = true;
  const std::vector<size_t> traps = TrapsInUse();
  return traps.empty() ? Status() : TakeTrapsOut(traps, why);
}

void PatchedFunctions::Take(const patch::Outcome& outcome, PatchCounts& counts) {
  if (outcome.error && counts.error.empty()) counts.error = outcome.error->ToString();
  for (const auto& [site, refusal] : outcome.refused) {
    FunctionOf(site).refused = std::string(ToString(refusal));
  }
}

Status PatchedFunctions::Unpatch(const FunctionList& functions, PatchCounts& counts) {
  std::vector<size_t> sites = SitesOf(functions);
  std::erase_if(sites, [this](size_t i) {
    return sites_.state(i) == patch::SiteState::kOriginal || FunctionOf(i).is_needed;
  });
  // What acts stays patched, but is not recorded.
  counts.unpatched +=
      static_cast<size_t>(std::erase_if(sites, [this](size_t i) { return Acts(FunctionOf(i)); }));
  return UnpatchSites(std::move(sites), counts);
}

Status PatchedFunctions::UnpatchSites(std::vector<size_t> sites, PatchCounts& counts) {
  if (sites.empty()) return {};
  Take(Switch(patch::Direction::kUnpatch, sites), counts);
  TRY(LogPatch(sites, PatchEvent::Action::kUnpatched));
  for (const size_t i : sites) {
    counts.unpatched += sites_.state(i) == patch::SiteState::kOriginal ? 1 : 0;
  }
  return {};
}

Result<PatchCounts> PatchedFunctions::Retry() {
  PatchCounts counts;
  std::vector<size_t> deferred;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (sites_.state(i) == patch::SiteState::kDeferred) deferred.push_back(i);
  }
  if (deferred.empty() && sites_.Count(patch::SiteState::kAsideLeft) == 0 &&
      sites_.Count(patch::SiteState::kStuck) == 0) {
    return counts;
  }
  Take(Switch(patch::Direction::kPatch, deferred), counts);
  Take(sites_.Retry(process_->process(), patch::SwitchMode::kStopped), counts);
  TRY(LogPatch(deferred, PatchEvent::Action::kPatched));
  for (const size_t i : deferred) {
    counts.patched += sites_.state(i) == patch::SiteState::kPatched ? 1 : 0;
    counts.deferred += sites_.state(i) == patch::SiteState::kDeferred ? 1 : 0;
  }
  return counts;
}

Result<PatchCounts> PatchedFunctions::UnpatchAll(Which which) {
  PatchCounts counts;
  std::vector<size_t> sites;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (RecordsCalls(sites_.site(i)) != (which == Which::kRecording)) continue;
    const patch::SiteState state = sites_.state(i);
    if (state != patch::SiteState::kOriginal && state != patch::SiteState::kGone) {
      sites.push_back(i);
    }
  }
  Take(Switch(patch::Direction::kUnpatch, sites), counts);
  TRY(LogPatch(sites, PatchEvent::Action::kDetached));
  for (const size_t i : sites) {
    counts.unpatched += sites_.state(i) == patch::SiteState::kOriginal ? 1 : 0;
  }
  return counts;
}

// Of what was asked for, all there is to say of each.
void PatchedFunctions::CountPatched(std::span<Function* const> wanted, PatchCounts& counts) const {
  std::map<std::string, size_t> refused;
  for (const Function* function : wanted) {
    if (!function->refused.empty()) {
      ++refused[function->refused];
      continue;
    }
    if (!function->site) continue;
    const patch::SiteState state = sites_.state(*function->site);
    if (state == patch::SiteState::kPatched) {
      ++counts.patched;
    } else if (state == patch::SiteState::kDeferred) {
      ++counts.deferred;
    } else {
      ++refused[std::string(ToString(state))];
    }
  }
  counts.refused.assign(refused.begin(), refused.end());
  std::ranges::stable_sort(counts.refused, std::ranges::greater(),
                           [](const auto& entry) { return entry.second; });
}

size_t PatchedFunctions::CountModified() const {
  size_t modified = 0;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const patch::Site& site = sites_.site(i);
    std::vector<uint8_t> memory(site.original.length);
    const patch::SiteState state = sites_.state(i);
    if (state == patch::SiteState::kGone || state == patch::SiteState::kModified) continue;
    if (!target_.Read(site.begin(), memory)) continue;  // its module is gone
    modified += std::ranges::equal(memory, site.original.view()) ? 0 : 1;
  }
  return modified;
}

size_t PatchedFunctions::CountForeign() const {
  size_t foreign = 0;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const patch::Site& site = sites_.site(i);
    std::vector<uint8_t> memory(site.original.length);
    if (sites_.state(i) == patch::SiteState::kGone) continue;
    if (!target_.Read(site.begin(), memory)) continue;
    foreign += patch::Assess(site, memory) == patch::MemoryForm::kForeign ? 1 : 0;
  }
  return foreign;
}

SiteCounts PatchedFunctions::Count() const {
  SiteCounts counts;
  for (const auto& [key, function] : functions_) {
    counts.functions += function.named ? 1 : 0;
    if (!function.wanted) continue;
    if (std::string why = WhyNotPatched(function); !why.empty()) ++counts.refused[std::move(why)];
  }
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (FunctionOf(i).is_needed) continue;
    const patch::SiteState state = sites_.state(i);
    ++counts.by_state[std::string(ToString(state))];
    if (state != patch::SiteState::kPatched) continue;
    ++counts.by_kind[std::string(x86::NameOf(sites_.site(i).kind))];
  }
  return counts;
}

}  // namespace stackreel::tracer
