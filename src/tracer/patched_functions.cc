#include "tracer/patched_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "tracer/needed_functions.h"
#include "tracer/trace_clock.h"
#include "tracer/unfit_function.h"
#include "x86/return_address.h"

namespace stackreel::tracer {

namespace {

using tracedata::PatchEvent;

constexpr const char* kNeededByTracing = "tracing itself needs it patched";
constexpr const char* kTouchesReturnAddress = "it looks at its return address";

// Why no trap is put into a module; empty if one may be.
std::string_view WhyNoTrapsIn(const TargetModule& module, bool use_traps) {
  // Where it makes threads and processes, the C library blocks all signals, and calls its own.
  constexpr std::string_view kInLibrary = "no trap in the C library, which blocks its signal";
  const size_t slash = module.path.rfind('/');
  const std::string_view file = std::string_view(module.path).substr(slash + 1);
  for (const std::string_view name : {"libc.", "libc-", "libpthread", "ld-", "ld."}) {
    if (file.starts_with(name)) return kInLibrary;
  }
  constexpr uint32_t kInterpreter = 3;  // PT_INTERP
  const bool is_static = module.is_program &&
                         std::ranges::none_of(module.code->image().segments(),
                                              [](const auto& s) { return s.type == kInterpreter; });
  if (is_static) return kInLibrary;
  return use_traps ? "" : "--traps puts a trap there";
}

// Why a function cannot be recorded, by what it does; null if it can.
const char* WhyUnfit(const TargetModule& module, const ModuleFunction& function) {
  if (function.start == module.code->image().entry()) return kNotCalled;
  if (const char* why = module.code->WhyForeign(function.start)) return why;
  if (const char* why = WhyUnfitName(function.name)) return why;
  for (const std::string_view name : function.others) {
    if (const char* why = WhyUnfitName(name)) return why;
  }
  return nullptr;
}

agent::StubKind StubOf(const ModuleFunction& function) {
  const bool keeps = MustKeepReturnAddress(function.name) ||
                     std::ranges::any_of(function.others, MustKeepReturnAddress);
  return keeps ? agent::StubKind::kInnerCall : agent::StubKind::kCall;
}

}  // namespace

PatchedFunctions::PatchedFunctions(Target& target, FactSink facts, FunctionNumbers& numbers,
                                   Executor& executor, bool use_traps)
    : target_(target),
      facts_(std::move(facts)),
      numbers_(numbers),
      executor_(executor),
      use_traps_(use_traps) {
  const auto status = os::ReadTextFile(fmt::format("/proc/{}/status", target.pid()));
  plan_options_.has_shadow_stack =
      status && os::StatusValue(*status, "x86_Thread_features").contains("shstk");
}

void PatchedFunctions::UseAgent(const AgentPlace& agent, bool always_needed) {
  always_needed_ = always_needed;
  agent_ = agent;
  rooms_.emplace(target_, agent.code);
  process_.emplace(target_, agent);
}

Result<PatchedFunctions::Choices> PatchedFunctions::Choose(std::span<const PatternChoice> patterns,
                                                           bool each_must_match) {
  std::vector<bool> matched(patterns.size());
  Choices choices = ChooseIn(AllModules(), patterns, matched);
  for (size_t i = 0; each_must_match && i < patterns.size(); ++i) {
    if (matched[i] || MayComeLater(patterns[i].pattern)) continue;
    return Fail(NothingMatches(patterns[i].pattern, modules_));
  }
  return choices;
}

PatchedFunctions::Choices PatchedFunctions::ChooseIn(const std::set<size_t>& modules,
                                                     std::span<const PatternChoice> patterns,
                                                     std::vector<bool>& matched) {
  Choices choices;
  for (const size_t m : modules) {
    TargetModule& module = modules_[m];
    if (!module.is_mapped) continue;
    const std::vector<size_t> concerned = PatternsFor(patterns, module);
    if (concerned.empty() || !ReadCode(module, target_.pid(), executor_)) continue;
    for (const ModuleFunction& function : module.code->functions()) {
      const Choice choice = ChoiceOf(patterns, concerned, function, matched);
      if (choice == Choice::kPatch) {
        choices.patch.emplace_back(m, &function);
        if (function.others.empty()) continue;
        const auto decides = std::ranges::find_if(
            concerned, [&](size_t i) { return MatchesFunction(patterns[i].pattern, function); });
        NoteName(m, function, patterns[*decides].pattern);
      }
      if (choice == Choice::kUnpatch) choices.unpatch.emplace_back(m, &function);
    }
  }
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (matched[i]) matched_.insert(patterns[i].pattern.text());
  }
  return choices;
}

// A function that has several names is called as who named it first did.
void PatchedFunctions::NoteName(size_t module, const ModuleFunction& function,
                                const FunctionPattern& pattern) {
  if (function.others.empty()) return;
  names_.try_emplace(Key{module, function.start}, TraceName(function, &pattern));
}

Result<PatchedFunctions::Function*> PatchedFunctions::RegisterNamed(
    size_t module, const ModuleFunction& function) {
  const bool is_fit = WhyUnfit(modules_[module], function) == nullptr;
  return Register(module, function, is_fit ? Values::kAsAsked : Values::kNone);
}

Result<PatchedFunctions::Function*> PatchedFunctions::Register(size_t module,
                                                               const ModuleFunction& function,
                                                               Values values) {
  const Key key = {module, function.start};
  const auto [at, is_new] = functions_.emplace(key, Function());
  if (!is_new) return &at->second;
  TargetModule& of = modules_[module];
  if (!of.number) {
    const auto [id, is_new_file] = numbers_.OfModule(of.path, of.version, of.build_id);
    of.number = id;
    if (is_new_file) {
      TRY(facts_(tracedata::TraceModule{.id = id, .path = of.path, .build_id = of.build_id}));
    }
    TRY(facts_(tracedata::ModuleLoad{.pid = target_.pid(),
                                     .module = id,
                                     .ticks = NowTicks(),
                                     .start = of.range.start,
                                     .end = of.range.end,
                                     .bias = of.bias}));
  }
  const auto [id, is_new_function] = numbers_.OfFunction(*of.number, function.start);
  at->second.id = id;
  by_id_.emplace(std::pair(module, id), key);
  RecordedValues recorded;
  if (values == Values::kAsAsked && values_ != nullptr) {
    TRY_ASSIGN(recorded, values_->Of(of, target_.pid(), function));
  }
  actions_changed_ = actions_changed_ || !recorded.reads.empty();
  at->second.actions.list = std::move(recorded.reads);
  if (!is_new_function) return &at->second;
  const auto name = names_.find(key);
  TRY(facts_(
      tracedata::TraceFunction{.id = id,
                               .module = *of.number,
                               .svma = function.start,
                               .size = function.code.size(),
                               .name = name != names_.end() ? name->second : TraceName(function),
                               .arguments = std::move(recorded.arguments),
                               .returns = std::move(recorded.results)}));
  return &at->second;
}

// Each is read by one thread: of those that have needed functions, several are of a size.
void PatchedFunctions::ReadModulesOfNeeded() {
  std::vector<TargetModule*> unread;
  for (TargetModule& module : modules_) {
    if (module.is_mapped && MayHaveNeeded(module) && module.code == nullptr) {
      unread.push_back(&module);
    }
  }
  executor_.ParallelFor(unread.size(), [&](size_t i, size_t) {
    InlineExecutor alone;
    (void)ReadCode(*unread[i], target_.pid(), alone);  // the module says why not
  });
}

Status PatchedFunctions::AddNeeded(Wishes& wishes) {
  for (size_t m = 0; m < modules_.size(); ++m) {
    TargetModule& module = modules_[m];
    if (!module.is_mapped || module.has_needed_planned) continue;
    module.has_needed_planned = true;
    if (!MayHaveNeeded(module) || !ReadCode(module, target_.pid(), executor_)) continue;
    for (const ModuleFunction& function : module.code->functions()) {
      const auto kind = StubNeededAt(function, {.traps = use_traps_});
      if (!kind) continue;
      TRY_ASSIGN(Function * known, Register(m, function));
      known->is_needed = true;
      if (known->site) continue;
      wishes[m].push_back({.target = &function, .function = known->id, .stub = *kind});
    }
  }
  return {};
}

PatchedFunctions::Function& PatchedFunctions::FunctionOf(size_t site) {
  return functions_.at(site_keys_.at(site));
}
const PatchedFunctions::Function& PatchedFunctions::FunctionOf(size_t site) const {
  return functions_.at(site_keys_.at(site));
}

Status PatchedFunctions::AddSite(size_t module, const PlannedSite& planned) {
  const Key& key = by_id_.at({module, planned.site.function});
  Function& function = functions_.at(key);
  const auto added = sites_.Add(planned.site);
  if (!added) {
    rooms_->GiveBack(planned.slot);
    return Refuse(function, std::string(ToString(added.error())));
  }
  // Nobody runs it before the site leads there.
  TRY(target_.Write(planned.slot.start, planned.stub_bytes));
  function.site = *added;
  site_keys_.push_back(key);
  return {};
}

Status PatchedFunctions::PlanAll(const Wishes& wishes) {
  for (const auto& [m, list] : wishes) {
    // Where there is no room, each that finds none is refused.
    (void)rooms_->Reserve(list.size() * agent::kMaxStubLength, modules_[m].range);
    plan_options_.why_no_trap = WhyNoTrapsIn(modules_[m], use_traps_);
    plan_options_.allow_trap = plan_options_.why_no_trap.empty();
    SitePlan plan = PlanSites(modules_[m].placed(), list, plan_options_, *rooms_);
    for (const PlannedSite& planned : plan.sites) TRY(AddSite(m, planned));
    for (RefusedFunction& refused : plan.refused) {
      TRY(Refuse(functions_.at(by_id_.at({m, refused.function})), std::move(refused.reason)));
    }
  }
  return {};
}

std::vector<size_t> PatchedFunctions::SitesOf(const FunctionList& functions) const {
  std::vector<size_t> sites;
  for (const auto& [module, function] : functions) {
    const auto at = functions_.find(Key{module, function->start});
    if (at != functions_.end() && at->second.site) sites.push_back(*at->second.site);
  }
  return sites;
}

// What can be said of each function before its site is switched.
Result<std::vector<PatchedFunctions::Function*>> PatchedFunctions::Plan(
    const FunctionList& functions, For what) {
  Wishes wishes;
  TRY(AddNeeded(wishes));
  TRY(AddLinkerStub(wishes));
  TRY(PlanAll(wishes));
  wishes.clear();
  std::vector<Function*> wanted;
  for (const auto& [module, function] : functions) {
    const char* const unfit = WhyUnfit(modules_[module], *function);
    TRY_ASSIGN(Function * known, RegisterNamed(module, *function));
    wanted.push_back(known);
    known->named = known->named || what == For::kRecording;
    known->wanted = true;
    if (known->is_needed) {
      TRY(Refuse(*known, kNeededByTracing));
    } else if (unfit != nullptr) {
      TRY(Refuse(*known, unfit));
    } else {
      known->refused.clear();
      if (known->site) continue;
      // By name some of these are known; but a library may be stripped of names.
      if (x86::TouchesReturnAddress(function->code)) {
        TRY(Refuse(*known, kTouchesReturnAddress));
        continue;
      }
      wishes[module].push_back(
          {.target = function, .function = known->id, .stub = StubOf(*function)});
    }
  }
  TRY(PlanAll(wishes));
  return wanted;
}

Status PatchedFunctions::Patch(const FunctionList& functions, For what, PatchCounts& counts) {
  TRY_ASSIGN(const std::vector<Function*> wanted, Plan(functions, what));
  if (actions_changed_) TRY(PublishActions());
  std::vector<size_t> sites = SitesOf(functions);
  // In one batch with those that walk the stack: nobody must unwind before they are patched.
  for (size_t i = 0; i < sites_.size(); ++i) {
    const patch::SiteState state = sites_.state(i);
    if (state == patch::SiteState::kOriginal && FunctionOf(i).is_needed) sites.push_back(i);
  }
  std::erase_if(sites, [this](size_t i) { return sites_.state(i) == patch::SiteState::kPatched; });
  Take(Switch(patch::Direction::kPatch, sites), counts);
  TRY(LogPatch(sites, PatchEvent::Action::kPatched));
  CountPatched(wanted, counts);
  return {};
}

// Each choice of values must be about something that is recorded.
Status PatchedFunctions::CheckValues(const FunctionList& functions) const {
  if (values_ == nullptr) return {};
  const std::vector<ValueChoice>& choices = values_->options().choices;
  for (size_t i = 0; i < choices.size(); ++i) {
    const bool matches = std::ranges::any_of(functions, [&](const auto& named) {
      return values_->Matches(i, modules_[named.first], *named.second);
    });
    if (matches || MayComeLater(choices[i].pattern)) continue;
    return Fail(Error(ErrorKind::kNotFound,
                      fmt::format("values are asked for of '{}', which is none of the {} functions "
                                  "that are recorded",
                                  choices[i].pattern.text(), functions.size()))
                    .WithCure("-P names what is recorded; without it, what -A and -R name is"));
  }
  return {};
}

Status PatchedFunctions::Check(std::span<const PatternChoice> patterns, bool each_must_match) {
  TRY(ReadModules());
  ReadModulesOfNeeded();
  TRY_ASSIGN(const Choices choices, Choose(patterns, each_must_match));
  expected_.clear();
  for (size_t m = 0; m < modules_.size(); ++m) {
    if (MayHaveNeeded(modules_[m])) expected_[m] = kMostNeeded;
  }
  for (const auto& [module, function] : choices.patch) ++expected_[module];
  return each_must_match ? CheckValues(choices.patch) : Status();
}

Status PatchedFunctions::Reserve() {
  size_t all = 0;
  for (const auto& [m, functions] : expected_) {
    // Where there is no room, those that find none are refused.
    (void)rooms_->Reserve(functions * agent::kMaxStubLength, modules_[m].range);
    all += functions;
  }
  return process_->journal().Reserve(all);
}

Status PatchedFunctions::Prepare(std::span<const PatternChoice> patterns) {
  TRY_ASSIGN(const Choices choices, Choose(patterns, /*each_must_match=*/false));
  if (choices.patch.empty()) return {};
  TRY(Plan(choices.patch, For::kRecording));
  return {};
}

Result<PatchCounts> PatchedFunctions::Apply(std::span<const PatternChoice> patterns) {
  TRY(FollowLibraries());
  TRY_ASSIGN(const Choices choices, Choose(patterns, /*each_must_match=*/true));
  return ApplyChosen(patterns, choices);
}

Result<PatchCounts> PatchedFunctions::TakeOver(std::span<const PatternChoice> patterns) {
  TRY(FollowLibraries());
  TRY_ASSIGN(const Choices choices, Choose(patterns, /*each_must_match=*/false));
  return ApplyChosen(patterns, choices);
}

Result<PatchCounts> PatchedFunctions::ApplyChosen(std::span<const PatternChoice> patterns,
                                                  const Choices& choices) {
  PatchCounts counts;
  counts.matched = choices.patch.size() + choices.unpatch.size();
  TRY(MarkRecorded(choices.unpatch, false));
  TRY(Unpatch(choices.unpatch, counts));
  KeepInForce(patterns);
  TRY(MarkRecorded(choices.patch, true));
  if (!choices.patch.empty() || !Awaited().empty() || always_needed_) {
    TRY(Patch(choices.patch, For::kRecording, counts));
  }
  if (counts.error.empty()) fresh_.clear();
  return counts;
}

}  // namespace stackreel::tracer
