// What PatchedFunctions does about filters and triggers: functions that act are patched for that,
// and are in the agent's table before they can be called.
#include <algorithm>
#include <utility>

#include "tracer/patched_functions.h"
#include "tracer/trace_clock.h"

namespace stackreel::tracer {

namespace {

using tracedata::AgentControl;

// Of FunctionActions::flags, those that filters and triggers are made of.
constexpr uint32_t kFilterFlags = tracedata::kBegins | tracedata::kEnds | tracedata::kTraceOn |
                                  tracedata::kTraceOff | tracedata::kSetsLevels |
                                  tracedata::kSetsDuration | tracedata::kAlways |
                                  tracedata::kLeadsHere | tracedata::kUnrecorded;
// A function with one of these is recorded as if -P had named it.
constexpr uint32_t kShown = tracedata::kBegins | tracedata::kLeadsHere;

}  // namespace

PatchedFunctions::FunctionList PatchedFunctions::MatchesOf(const FunctionPattern& pattern,
                                                           const std::set<size_t>& modules) {
  FunctionList list;
  for (const size_t m : modules) {
    TargetModule& module = modules_[m];
    if (!module.is_mapped || !MatchesModule(pattern, module)) continue;
    if (!ReadCode(module, target_.pid(), executor_)) continue;
    for (const ModuleFunction& function : module.code->functions()) {
      if (!MatchesFunction(pattern, function)) continue;
      list.emplace_back(m, &function);
      NoteName(m, function, pattern);
    }
  }
  return list;
}

std::set<size_t> PatchedFunctions::AllModules() const {
  std::set<size_t> all;
  for (size_t m = 0; m < modules_.size(); ++m) all.insert(m);
  return all;
}

Status PatchedFunctions::CheckFilters(const CallFilters& filters) {
  TRY(ReadModules());
  for (const FunctionFilter& filter : filters.functions) {
    if (!MatchesOf(filter.pattern, AllModules()).empty()) continue;
    if (!MayComeLater(filter.pattern)) return Fail(NothingMatches(filter.pattern, modules_));
  }
  return {};
}

// The number of a duration that functions set: those given once are kept, as calls have them.
Result<uint8_t> PatchedFunctions::DurationNumber(uint64_t ticks) {
  std::vector<uint64_t>& durations = common_actions_.durations;
  const auto known = std::ranges::find(durations, ticks);
  const auto number = static_cast<size_t>(known - durations.begin()) + 1;
  if (number >= tracedata::kDurations) {
    return Fail(ErrorKind::kUnsupported, "more than 255 different times were given by triggers");
  }
  if (known == durations.end()) durations.push_back(ticks);
  return static_cast<uint8_t>(number);
}

// Has the functions of `modules` do what the filters in force say; adds those that act to `acting`.
Status PatchedFunctions::ActIn(const std::set<size_t>& modules, FunctionList& acting) {
  for (const FunctionFilter& filter : filters_.functions) {
    uint8_t duration = 0;
    if (filter.least_nanoseconds) {
      TRY_ASSIGN(duration, DurationNumber(TicksOf(*filter.least_nanoseconds)));
    }
    for (const auto& found : MatchesOf(filter.pattern, modules)) {
      TRY_ASSIGN(Function * function, RegisterNamed(found.first, *found.second));
      tracedata::FunctionActions& actions = function->actions.actions;
      actions.flags |= filter.actions.flags;
      if ((filter.actions.flags & tracedata::kSetsLevels) != 0) {
        actions.levels = filter.actions.levels;
      }
      if (duration != 0) actions.duration = duration;
      acting.push_back(found);
      ++filter_matches_[filter.option];
    }
  }
  // A function that several filters are about is there once.
  std::ranges::sort(acting);
  const auto again = std::ranges::unique(acting);
  acting.erase(again.begin(), again.end());
  MarkUnrecorded(/*idle=*/false);
  return {};
}

// Functions that only act are not recorded, nor are (`idle`) those that did and are about to be
// unpatched. True if that changed for one.
bool PatchedFunctions::MarkUnrecorded(bool idle) {
  bool changed = false;
  for (auto& [key, function] : functions_) {
    uint32_t& flags = function.actions.actions.flags;
    const uint32_t does = flags & kFilterFlags & ~tracedata::kUnrecorded;
    const bool is_idle = idle && !function.is_needed && function.site &&
                         sites_.state(*function.site) == patch::SiteState::kPatched;
    const bool silent = (does != 0 || is_idle) && (does & kShown) == 0 && !function.recorded;
    const uint32_t now =
        (flags & ~tracedata::kUnrecorded) | (silent ? uint32_t{tracedata::kUnrecorded} : 0);
    changed = changed || now != flags;
    flags = now;
  }
  return changed;
}

// Marks what patterns named, in time for the agent to know when it is patched.
Status PatchedFunctions::MarkRecorded(const FunctionList& functions, bool recorded) {
  for (const auto& [module, function] : functions) {
    if (!recorded && !functions_.contains(Key{module, function->start})) continue;
    TRY_ASSIGN(Function * known, RegisterNamed(module, *function));
    known->recorded = recorded;
  }
  return MarkUnrecorded(/*idle=*/false) ? PublishActions() : Status();
}

bool PatchedFunctions::Acts(const Function& function) {
  return (function.actions.actions.flags & kFilterFlags) != 0;
}

Status PatchedFunctions::WriteCommonFilters() {
  const Avma control = agent_.control();
  TRY(target_.WriteObject<uint64_t>(control + offsetof(AgentControl, min_duration),
                                    TicksOf(filters_.least_nanoseconds)));
  // Where nothing can switch it on any more it is not left off.
  if (filters_.tracing || !filters_.SwitchTracing()) {
    TRY(target_.WriteObject<uint32_t>(control + offsetof(AgentControl, tracing_off),
                                      filters_.tracing.value_or(true) ? 0 : 1));
  }
  return {};
}

Status PatchedFunctions::PublishActions() {
  actions_changed_ = false;
  tracedata::ActionSet set = common_actions_;
  for (const auto& [key, function] : functions_) {
    if (!function.actions.empty()) set.functions.emplace(function.id, function.actions);
  }
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  // The plain way in asks for nothing, not even whether tracing is on.
  if (!set.empty() || filters_.tracing == false) {
    TRY(rooms_->SetEntering(agent::Entering::kActing));
    return tracer::PublishActions(target_, agent_, tracedata::EncodeActionTable(set));
  }
  TRY(tracer::PublishActions(target_, agent_, {}));
  return rooms_->SetEntering(agent::Entering::kPlain);
}

Status PatchedFunctions::UnpatchIdle(PatchCounts& counts) {
  std::vector<size_t> sites;
  for (const auto& [key, function] : functions_) {
    if (!function.site || function.recorded || function.is_needed || Acts(function)) continue;
    if (sites_.state(*function.site) == patch::SiteState::kPatched) sites.push_back(*function.site);
  }
  return UnpatchSites(std::move(sites), counts);
}

Result<PatchCounts> PatchedFunctions::SetFilters(CallFilters filters, uint64_t ticks_per_second,
                                                 bool each_must_match) {
  TRY_ASSIGN(const PatchCounts followed, FollowLibraries());
  if (each_must_match) TRY(CheckFilters(filters));
  filters_ = std::move(filters);
  ticks_per_second_ = ticks_per_second;
  filter_matches_.assign(filters_.options.size(), 0);
  for (auto& [key, function] : functions_) {
    tracedata::FunctionActions& actions = function.actions.actions;
    actions = {.flags = actions.flags & ~kFilterFlags};
  }
  common_actions_.root_state = filters_.RootState();
  FunctionList acting;
  TRY(ActIn(AllModules(), acting));
  if (followed.error.empty()) fresh_.clear();
  MarkUnrecorded(/*idle=*/true);
  TRY(facts_(tracedata::FilterChange{
      .ticks = NowTicks(), .pid = target_.pid(), .filters = filters_.options}));
  {
    TRY_ASSIGN(const Holding held, Holding::Of(target_));
    TRY(WriteCommonFilters());
    TRY(PublishActions());
  }
  PatchCounts counts;
  counts.matched = acting.size();
  if (!acting.empty()) TRY(Patch(acting, For::kActing, counts));
  TRY(UnpatchIdle(counts));
  if (MarkUnrecorded(/*idle=*/true)) TRY(PublishActions());
  return counts;
}

}  // namespace stackreel::tracer
