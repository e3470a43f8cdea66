#include "tracer/recover.h"

#include <chrono>
#include <thread>
#include <vector>

#include "patch/site_set.h"
#include "tracer/target_process.h"

namespace stackreel::tracer {

namespace {

constexpr int kRecoverTries = 200;
constexpr auto kPause = std::chrono::milliseconds(2);

// Most sites while the threads are held; those that this is not enough for by way of a trap.
Status Unpatch(patch::SiteSet& set, std::span<const size_t> which, const patch::Process& process) {
  auto done = set.Unpatch(which, process, patch::SwitchMode::kStopped);
  std::vector<size_t> rest;
  rest.reserve(done.refused.size());
  for (const auto& [site, refusal] : done.refused) rest.push_back(site);
  if (!done.error) done = set.Unpatch(rest, process, patch::SwitchMode::kTrap);
  return done.error ? Fail(std::move(*done.error)) : Status();
}

Status RecoverOnce(Target& target, const AgentPlace& agent, const std::vector<patch::Site>& sites,
                   TargetProcess& process, patch::SiteSet& set, UntoldCalls& open,
                   RecoverOutcome& outcome) {
  TRY_ASSIGN(const Holding held, Holding::Of(target));
  const auto unpatch = [&](bool recording) -> Status {
    std::vector<size_t> which;
    for (size_t i = 0; i < set.size(); ++i) {
      if (RecordsCalls(set.site(i)) == recording) which.push_back(i);
    }
    return Unpatch(set, which, process.process());
  };
  TRY(unpatch(/*recording=*/true));
  TRY_ASSIGN(const auto code, AgentCodeRanges(target, agent, sites));
  TRY_ASSIGN(const LeaveOutcome left, PutReturnAddressesBack(target, agent, code, open));
  outcome.put_back += left.put_back;
  outcome.busy = left.busy;
  if (left.busy == 0) TRY(unpatch(/*recording=*/false));
  outcome.restored = set.Count(patch::SiteState::kOriginal);
  outcome.gone = set.Count(patch::SiteState::kGone);
  outcome.left = left.busy == 0 && outcome.restored + outcome.gone == sites.size();
  return outcome.left ? MarkLeft(target, agent) : Status();
}

// Threads that wait for a free chunk would do so for a second: nobody makes one free any more.
Status EndWaits(Target& target, const AgentPlace& agent) {
  TRY(target.WriteObject(agent.control() + offsetof(tracedata::AgentControl, on_full),
                         tracedata::OnFull::kDrop));
  const Avma freed = agent.pool() + offsetof(tracedata::PoolHeader, freed);
  TRY_ASSIGN(const auto count, target.ReadObject<uint32_t>(freed));
  return target.WriteObject(freed, count + 1);
}

}  // namespace

Result<RecoverOutcome> Recover(Target& target, const AgentPlace& agent, UntoldCalls& open) {
  TRY_ASSIGN(const std::vector<patch::Site> sites, ReadJournal(target, agent));
  patch::SiteSet set;
  for (const patch::Site& site : sites) (void)set.Add(site, patch::SiteState::kStuck);
  TargetProcess process(target, agent);
  // Should this process die as well, all of them are in the journal still.
  std::vector<const patch::Site*> all;
  all.reserve(set.size());
  for (size_t i = 0; i < set.size(); ++i) all.push_back(&set.site(i));
  process.journal().Adopt(all);
  TRY(EndWaits(target, agent));
  RecoverOutcome outcome;
  outcome.sites = sites.size();
  for (int i = 0; i < kRecoverTries; ++i) {
    TRY(RecoverOnce(target, agent, sites, process, set, open, outcome));
    if (outcome.left) break;
    std::this_thread::sleep_for(kPause);
  }
  return outcome;
}

}  // namespace stackreel::tracer
