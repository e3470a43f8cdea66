// What PatchedFunctions does about modules that come and go.
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <map>

#include "tracer/dynamic_linker.h"
#include "tracer/patched_functions.h"

namespace stackreel::tracer {

namespace {

// One place of one file.
bool IsSameModule(const TargetModule& a, const TargetModule& b) {
  return a.path == b.path && a.range == b.range && a.bias == b.bias && a.version == b.version &&
         a.build_id == b.build_id;
}

}  // namespace

Status PatchedFunctions::ReadModules() {
  TRY_ASSIGN(const std::vector<os::ProcMapping> maps, os::ReadProcMaps(target_.pid()));
  // Files are opened again only when there are others than the last time.
  std::vector<std::pair<uint64_t, uint64_t>> code;
  for (const os::ProcMapping& mapping : maps) {
    if ((mapping.prot & PROT_EXEC) != 0 && mapping.ino != 0) {
      code.emplace_back(mapping.start, mapping.ino);
    }
  }
  if (code == mapped_code_) return {};
  TRY_ASSIGN(std::vector<TargetModule> now, tracer::ReadModules(target_.pid(), maps));
  mapped_code_ = std::move(code);
  std::vector<bool> is_there(modules_.size());
  std::vector<TargetModule> added;
  // Those known keep their numbers, which events and functions have.
  for (TargetModule& module : now) {
    const auto known = std::ranges::find_if(
        modules_, [&module](const TargetModule& old) { return IsSameModule(old, module); });
    if (known == modules_.end()) {
      added.push_back(std::move(module));
    } else {
      is_there[static_cast<size_t>(known - modules_.begin())] = true;
    }
  }
  // What is gone makes room first: another may lie in its place.
  for (size_t m = 0; m < is_there.size(); ++m) {
    if (modules_[m].is_mapped && !is_there[m]) NoteUnmapped(m);
  }
  for (size_t m = 0; m < is_there.size(); ++m) {
    if (!modules_[m].is_mapped && is_there[m]) NoteMappedAgain(m);
  }
  for (TargetModule& module : added) {
    fresh_.insert(modules_.size());
    modules_.push_back(std::move(module));
  }
  return {};
}

std::vector<PatchedFunctions::Function*> PatchedFunctions::PlannedIn(size_t module) {
  std::vector<Function*> functions;
  for (auto at = functions_.lower_bound(Key{module, Svma(0)});
       at != functions_.end() && at->first.module == module; ++at) {
    if (at->second.site) functions.push_back(&at->second);
  }
  return functions;
}

void PatchedFunctions::NoteUnmapped(size_t module) {
  modules_[module].is_mapped = false;
  fresh_.erase(module);
  for (const Function* function : PlannedIn(module)) sites_.Forget(*function->site);
}

void PatchedFunctions::NoteMappedAgain(size_t module) {
  modules_[module].is_mapped = true;
  modules_[module].has_needed_planned = false;
  fresh_.insert(module);
  for (Function* function : PlannedIn(module)) {
    if (!sites_.Revive(*function->site)) function->site.reset();
  }
}

// A module that went and came back between two looks, at the same place: all of its sites hold what
// the file has.
void PatchedFunctions::NoteReloaded() {
  for (size_t m = 0; m < modules_.size(); ++m) {
    if (!modules_[m].is_mapped || modules_[m].is_program) continue;
    for (const Function* function : PlannedIn(m)) {
      if (sites_.state(*function->site) != patch::SiteState::kPatched) continue;
      const patch::Site& site = sites_.site(*function->site);
      std::array<uint8_t, patch::kMaxSiteLength> bytes = {};
      const std::span<uint8_t> memory(bytes.data(), site.original.length);
      if (target_.Read(site.begin(), memory) &&
          patch::Assess(site, memory) == patch::MemoryForm::kOriginal) {
        NoteUnmapped(m);
        NoteMappedAgain(m);
      }
      break;
    }
  }
}

void PatchedFunctions::KeepInForce(std::span<const PatternChoice> patterns) {
  for (const PatternChoice& added : patterns) {
    // The same pattern again decides from here on, and what it decided before is overruled.
    std::erase_if(in_force_, [&added](const PatternChoice& old) {
      return old.pattern.text() == added.pattern.text();
    });
    in_force_.push_back(added);
  }
}

std::vector<std::string> PatchedFunctions::Awaited() const {
  std::vector<std::string> awaited;
  const auto add = [&](const FunctionPattern& pattern) {
    const bool is_there = std::ranges::any_of(
        modules_, [&](const TargetModule& module) { return MatchesModule(pattern, module); });
    if (!is_there) awaited.push_back(pattern.text());
  };
  for (const PatternChoice& choice : in_force_) add(choice.pattern);
  for (const FunctionFilter& filter : filters_.functions) add(filter.pattern);
  return awaited;
}

// Whether a pattern without a match may get one later.
bool PatchedFunctions::MayComeLater(const FunctionPattern& pattern) const {
  if (!FindDynamicLinker(target_, modules_)) return false;
  return pattern.names_module() &&
         std::ranges::none_of(modules_, [&pattern](const TargetModule& module) {
           return module.is_mapped && MatchesModule(pattern, module);
         });
}

Result<PatchCounts> PatchedFunctions::FollowLibraries() {
  TRY(ReadModules());
  NoteReloaded();
  PatchCounts counts;
  const bool any_wanted = !filters_.functions.empty() ||
                          std::ranges::any_of(in_force_, [](const PatternChoice& choice) {
                            return choice.choice == Choice::kPatch;
                          });
  if (fresh_.empty() || !any_wanted) return counts;
  std::vector<bool> matched(in_force_.size());
  const FunctionList chosen = ChooseIn(fresh_, in_force_, matched).patch;
  counts.matched = chosen.size();
  FunctionList acting;
  TRY(ActIn(fresh_, acting));
  TRY(MarkRecorded(chosen, true));
  if (!acting.empty()) {
    TRY(PublishActions());
    PatchCounts for_acting;
    TRY(Patch(acting, For::kActing, for_acting));
  }
  TRY(Patch(chosen, For::kRecording, counts));
  if (counts.error.empty()) fresh_.clear();
  return counts;
}

bool PatchedFunctions::HearsOfLibraries() const {
  if (!linker_) return true;  // there are none
  const auto at = functions_.find(*linker_);
  return at != functions_.end() && at->second.site &&
         sites_.state(*at->second.site) == patch::SiteState::kPatched;
}

// The function that the dynamic linker calls when it has loaded something.
Status PatchedFunctions::AddLinkerStub(Wishes& wishes) {
  if (linker_) return {};
  const auto linker = FindDynamicLinker(target_, modules_);
  if (!linker) return {};
  for (size_t m = 0; m < modules_.size(); ++m) {
    TargetModule& module = modules_[m];
    if (!module.is_mapped || !module.range.Contains(linker->function)) continue;
    TRY(ReadCode(module, target_.pid(), executor_));
    const Svma start(linker->function.value - module.bias);
    linker_ = Key{m, start};
    const auto function =
        std::ranges::find(module.code->functions(), start, &ModuleFunction::start);
    if (function == module.code->functions().end()) return {};
    TRY_ASSIGN(Function * known, Register(m, *function));
    known->is_needed = true;
    if (known->site) return {};
    wishes[m].push_back(
        {.target = &*function, .function = known->id, .stub = agent::StubKind::kLibraries});
    return target_.WriteObject<uint64_t>(
        agent_.control() + offsetof(tracedata::AgentControl, debug_state), linker->state.value);
  }
  return {};
}

}  // namespace stackreel::tracer
