#include "patch/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "patch/quiesce.h"

namespace stackreel::patch {
namespace {

constexpr int kRounds = 4;
constexpr uint64_t kPageSize = 4096;

// One store of a kind's switching, in the round it belongs to.
struct Store {
  uint8_t round;
  Part part;
  Form form;
  StepFor only = StepFor::kCleared;
};
// What switches a site, by how it is switched. A part that a site has not is no store.
constexpr Store kPatchByTrap[] = {
    {0, Part::kAside, Form::kPatched},
    {0, Part::kHead, Form::kTrap},
    {1, Part::kTail, Form::kPatched},
    {2, Part::kHead, Form::kPatched},
    {1, Part::kHead, Form::kOriginal, StepFor::kDeferred},
    {1, Part::kAside, Form::kOriginal, StepFor::kDeferred},
};
constexpr Store kUnpatchByTrap[] = {
    {0, Part::kHead, Form::kTrap},
    {1, Part::kTail, Form::kOriginal},
    {2, Part::kHead, Form::kOriginal},
    {3, Part::kAside, Form::kOriginal},
};
// Sleds, and sites that stay traps: what is aside is there before the one byte leads to it.
constexpr Store kPatchByByte[] = {{0, Part::kAside, Form::kPatched},
                                  {1, Part::kHead, Form::kPatched}};
constexpr Store kUnpatchByByte[] = {{0, Part::kHead, Form::kOriginal},
                                    {3, Part::kAside, Form::kOriginal}};
constexpr Store kPatchStopped[] = {{0, Part::kAside, Form::kPatched},
                                   {1, Part::kBranch, Form::kPatched}};
constexpr Store kUnpatchStopped[] = {{0, Part::kBranch, Form::kOriginal},
                                     {0, Part::kBranch, Form::kOriginal, StepFor::kDeferred},
                                     {1, Part::kAside, Form::kOriginal}};

// Undoing the first round. The aside is out of reach while the head is the original's.
constexpr Store kBackToOriginal[] = {{0, Part::kHead, Form::kOriginal},
                                     {0, Part::kAside, Form::kOriginal}};
constexpr Store kBackToPatched[] = {{0, Part::kHead, Form::kPatched}};
constexpr Store kBackToOriginalStopped[] = {{0, Part::kBranch, Form::kOriginal},
                                            {1, Part::kAside, Form::kOriginal}};
constexpr Store kBackToPatchedStopped[] = {{0, Part::kAside, Form::kPatched},
                                           {1, Part::kBranch, Form::kPatched}};

std::span<const Store> StoresOf(SiteKind kind, Direction direction, SwitchMode mode) {
  const bool patch = direction == Direction::kPatch;
  if (mode == SwitchMode::kStopped) {
    return patch ? std::span<const Store>(kPatchStopped) : kUnpatchStopped;
  }
  if (SwitchesByTrap(kind)) return patch ? std::span<const Store>(kPatchByTrap) : kUnpatchByTrap;
  return patch ? std::span<const Store>(kPatchByByte) : kUnpatchByByte;
}

std::span<const Store> StoresBack(Direction direction, SwitchMode mode) {
  const bool stopped = mode == SwitchMode::kStopped;
  if (direction == Direction::kPatch) {
    return stopped ? std::span<const Store>(kBackToOriginalStopped) : kBackToOriginal;
  }
  return stopped ? std::span<const Store>(kBackToPatchedStopped) : kBackToPatched;
}

class PlanBuilder {
 public:
  PlanBuilder(std::span<const Site* const> sites, Direction direction, SwitchMode mode)
      : sites_(sites), plan_{direction, mode, {}} {}

  void Add(StepKind kind, Form form = Form::kOriginal) {
    plan_.steps.push_back({.kind = kind, .form = form});
  }
  void Publish(TrapEntries entries) {
    plan_.steps.push_back({.kind = StepKind::kPublish, .entries = entries});
  }
  void ForEachSite(StepKind kind, Form form) {
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      plan_.steps.push_back({.kind = kind, .site = i, .form = form});
    }
  }
  // Only where it is of use.
  void ClearOut(Form inside) {
    for (const Site* site : sites_) {
      if (NeedsClearing(*site, inside)) return Add(StepKind::kClearOut, inside);
    }
  }
  // True if there was anything to write.
  bool Round(int round, auto&& stores_of) {
    const size_t before = plan_.steps.size();
    const Form from = plan_.direction == Direction::kPatch ? Form::kOriginal : Form::kPatched;
    for (uint32_t i = 0; i < sites_.size(); ++i) {
      const Site& site = *sites_[i];
      for (const Store& store : stores_of(site)) {
        if (store.round != round || RangeOf(site, store.part).length == 0) continue;
        if (store.only == StepFor::kDeferred && !NeedsClearing(site, from)) continue;
        plan_.steps.push_back({.kind = StepKind::kWrite,
                               .site = i,
                               .part = store.part,
                               .form = store.form,
                               .only = store.only});
      }
    }
    return plan_.steps.size() != before;
  }
  Plan Take() { return std::move(plan_); }

 private:
  std::span<const Site* const> sites_;
  Plan plan_;
};

std::string_view ToString(Part part) {
  switch (part) {
    case Part::kHead:
      return "head";
    case Part::kTail:
      return "tail";
    case Part::kAside:
      return "aside";
    case Part::kBranch:
      return "branch";
  }
  return "?";
}
std::string_view ToString(Form form) {
  switch (form) {
    case Form::kOriginal:
      return "original";
    case Form::kPatched:
      return "patched";
    case Form::kTrap:
      return "trap";
  }
  return "?";
}
std::string_view ToString(TrapEntries entries) {
  switch (entries) {
    case TrapEntries::kToStub:
      return "to stubs";
    case TrapEntries::kToOutOfLine:
      return "to out-of-line code";
    case TrapEntries::kStanding:
      return "what stands";
  }
  return "?";
}

std::string WriteToString(const Step& step, const Site& site) {
  std::string bytes;
  for (const uint8_t byte : BytesOf(site, step.part, step.form)) {
    bytes += fmt::format(" {:02x}", byte);
  }
  return fmt::format("write {:#x} {}:{}{}", (site.begin() + RangeOf(site, step.part).offset).value,
                     ToString(step.part), bytes,
                     step.only == StepFor::kDeferred ? "  if deferred" : "");
}

}  // namespace

Plan MakePlan(std::span<const Site* const> sites, Direction direction, SwitchMode mode) {
  PlanBuilder plan(sites, direction, mode);
  const bool patch = direction == Direction::kPatch;
  const Form from = patch ? Form::kOriginal : Form::kPatched;
  const auto stores = [&](const Site& site) { return StoresOf(site.kind, direction, mode); };
  const auto any = [&](auto&& of) { return std::ranges::any_of(sites, of); };
  const bool traps = any([&](const Site* site) {
    return site->kind == SiteKind::kTrap ||
           (mode == SwitchMode::kTrap && SwitchesByTrap(site->kind));
  });
  plan.Add(StepKind::kKeep);
  if (mode == SwitchMode::kStopped) plan.Add(StepKind::kStop);
  plan.ForEachSite(StepKind::kCheck, from);
  if (traps) plan.Publish(patch ? TrapEntries::kToStub : TrapEntries::kToOutOfLine);
  if (mode == SwitchMode::kStopped) {
    plan.ClearOut(from);
    plan.Round(0, stores);
    plan.Round(1, stores);
    plan.Add(StepKind::kSync);
  } else {
    for (int round = 0; round < kRounds; ++round) {
      if (!patch && round == 3) plan.ClearOut(Form::kPatched);
      if (plan.Round(round, stores)) plan.Add(StepKind::kSync);
      if (patch && round == 0) plan.ClearOut(Form::kOriginal);
    }
  }
  if (!patch) plan.ForEachSite(StepKind::kVerify, Form::kOriginal);
  if (mode == SwitchMode::kStopped) plan.Add(StepKind::kResume);
  if (traps) plan.Publish(TrapEntries::kStanding);
  return plan.Take();
}

Plan MakeStepBack(std::span<const Site* const> sites, const Plan& undone) {
  PlanBuilder plan(sites, undone.direction, undone.mode);
  const auto stores = [&](const Site&) { return StoresBack(undone.direction, undone.mode); };
  plan.Round(0, stores);
  plan.Round(1, stores);
  plan.Add(StepKind::kSync);
  if (undone.mode == SwitchMode::kStopped) plan.Add(StepKind::kResume);
  plan.Publish(TrapEntries::kStanding);
  return plan.Take();
}

std::optional<Refusal> RefusedBy(const Site& site, SwitchMode mode) {
  if (mode == SwitchMode::kTrap) return std::nullopt;
  if (site.kind == SiteKind::kTrap) return Refusal::kTrapBlocked;
  const PartRange branch = RangeOf(site, Part::kBranch);
  const uint64_t first = site.begin().value + branch.offset;
  if (first / kPageSize != (first + branch.length - 1) / kPageSize) return Refusal::kCrossesPage;
  return std::nullopt;
}

std::string ToString(const Plan& plan, std::span<const Site* const> sites) {
  std::string text;
  for (const Step& step : plan.steps) {
    const uint64_t at = step.site < sites.size() ? sites[step.site]->address.value : 0;
    switch (step.kind) {
      case StepKind::kKeep:
        text += "keep";
        break;
      case StepKind::kStop:
        text += "stop";
        break;
      case StepKind::kCheck:
        text += fmt::format("check {:#x} {}", at, ToString(step.form));
        break;
      case StepKind::kPublish:
        text += fmt::format("publish {}", ToString(step.entries));
        break;
      case StepKind::kWrite:
        text += WriteToString(step, *sites[step.site]);
        break;
      case StepKind::kSync:
        text += "sync";
        break;
      case StepKind::kClearOut:
        text += fmt::format("clear out {}", ToString(step.form));
        break;
      case StepKind::kVerify:
        text += fmt::format("verify {:#x} {}", at, ToString(step.form));
        break;
      case StepKind::kResume:
        text += "resume";
        break;
    }
    text += '\n';
  }
  return text;
}

}  // namespace stackreel::patch
