#include "patch/execute.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "patch/quiesce.h"

namespace stackreel::patch {
namespace {

bool MayHoldTrap(const Site& site) {
  return site.kind == SiteKind::kTrap || SwitchesByTrap(site.kind);
}

}  // namespace

std::string_view ToString(SiteState state) {
  switch (state) {
    case SiteState::kOriginal:
      return "original";
    case SiteState::kPatched:
      return "patched";
    case SiteState::kDeferred:
      return "deferred";
    case SiteState::kAsideLeft:
      return "original, rest left";
    case SiteState::kModified:
      return "modified by others";
    case SiteState::kStuck:
      return "stuck";
    case SiteState::kGone:
      return "gone";
  }
  return "unknown";
}

TrapEntry EntryToStub(const Site& site) {
  return {site.address, site.stub, site.PushedReturnAddress()};
}
TrapEntry EntryToOutOfLine(const Site& site) { return {site.address, site.out_of_line, Avma(0)}; }

std::optional<TrapEntry> StandingEntry(const Site& site, SiteState state) {
  if (state == SiteState::kStuck && MayHoldTrap(site)) return EntryToOutOfLine(site);
  if (state == SiteState::kPatched && site.kind == SiteKind::kTrap) return EntryToStub(site);
  return std::nullopt;
}

Execution::Execution(std::vector<const Site*> sites, std::vector<SiteState> known,
                     Direction direction, SwitchMode mode, std::vector<TrapEntry> standing)
    : Execution(sites, std::move(known), MakePlan(sites, direction, mode), std::move(standing)) {}

Execution::Execution(std::vector<const Site*> sites, std::vector<SiteState> known, Plan plan,
                     std::vector<TrapEntry> standing)
    : sites_(std::move(sites)),
      standing_(std::move(standing)),
      plan_(std::move(plan)),
      progress_(sites_.size()),
      states_(std::move(known)) {
  CHECK(states_.size() == sites_.size());
  SkipIdle();
}

const Step* Execution::next() const {
  return at_ < plan_.steps.size() ? &plan_.steps[at_] : nullptr;
}

void Execution::Advance(const Process& process) {
  const Step step = plan_.steps[at_++];
  switch (step.kind) {
    case StepKind::kKeep:
      Keep(process);
      break;
    case StepKind::kStop:
      if (auto stopped = process.threads->Stop(); !stopped) {
        Fail(std::move(stopped.error()));
      } else {
        stopped_ = true;
      }
      break;
    case StepKind::kCheck:
      Check(process, step);
      break;
    case StepKind::kPublish:
      Publish(process, step);
      break;
    case StepKind::kWrite:
      Write(process, step);
      break;
    case StepKind::kSync:
      Sync(process);
      break;
    case StepKind::kClearOut:
      ClearOut(process, step);
      break;
    case StepKind::kVerify:
      Verify(process, step);
      break;
    case StepKind::kResume:
      stopped_ = false;
      // The sites are as they are; that threads could not be let go is the whole news.
      if (auto resumed = process.threads->Resume(); resumed) {
        NoteSynced();
      } else if (!error_) {
        error_ = std::move(resumed.error());
      }
      break;
  }
  SkipIdle();
}

bool Execution::IsIdle(const Step& step) const {
  const auto active = [&] {
    return std::ranges::any_of(progress_, [](const Progress& p) { return p.active; });
  };
  switch (step.kind) {
    case StepKind::kStop:
    case StepKind::kKeep:
      return false;
    case StepKind::kResume:
      return !stopped_;
    case StepKind::kCheck:
    case StepKind::kVerify:
      return !progress_[step.site].active;
    case StepKind::kWrite: {
      const Progress& p = progress_[step.site];
      if (!p.active || p.deferred != (step.only == StepFor::kDeferred)) return true;
      const auto held = static_cast<Held>(step.form);
      switch (step.part) {
        case Part::kHead:
          return p.head == held;
        case Part::kTail:
          return p.tail == held;
        case Part::kAside:
          return p.aside == held;
        case Part::kBranch:
          return p.head == held && p.tail == held;
      }
      return false;
    }
    case StepKind::kSync:
      return std::ranges::none_of(progress_, [](const Progress& p) { return p.unsynced; });
    case StepKind::kClearOut:
      return !active();
    // What stands is published even if no site is left: sites that were given up may have entries.
    case StepKind::kPublish:
      return step.entries != TrapEntries::kStanding && !active();
  }
  return false;
}

void Execution::SkipIdle() {
  while (at_ < plan_.steps.size() && IsIdle(plan_.steps[at_])) ++at_;
  if (at_ == plan_.steps.size()) Finish();
}

void Execution::Keep(const Process& process) {
  if (auto kept = process.journal->Keep(sites_); !kept) Fail(std::move(kept.error()));
}

void Execution::Check(const Process& process, const Step& step) {
  const Site& site = *sites_[step.site];
  std::array<uint8_t, kMaxSiteLength> bytes;
  const std::span<uint8_t> memory(bytes.data(), site.original.length);
  if (auto read = process.memory->Read(site.begin(), memory); !read) {
    if (read.error().kind == ErrorKind::kNotFound) return Leave(step.site, SiteState::kGone);
    return Fail(std::move(read.error()));
  }
  const MemoryForm form = Assess(site, memory);
  progress_[step.site].checked = true;
  NoteForms(step.site, memory);
  if (form == MemoryForm::kForeign) return Leave(step.site, SiteState::kModified);
  if (plan_.direction == Direction::kUnpatch) {
    if (form == MemoryForm::kPatched) return;
    // An execution has died, and not all cores may know what it has stored last.
    progress_[step.site].unsynced = true;
    if (form == MemoryForm::kOriginal) return Leave(step.site, SiteState::kOriginal);
    progress_[step.site].halfway = true;
    past_first_round_ = plan_.mode == SwitchMode::kTrap;
    return;
  }
  switch (form) {
    case MemoryForm::kOriginal:
      return;
    case MemoryForm::kPatched:
      return Leave(step.site, SiteState::kPatched);
    case MemoryForm::kAsideLeft:
      return Leave(step.site, SiteState::kAsideLeft);
    default:
      return Leave(step.site, SiteState::kStuck);
  }
}

void Execution::Publish(const Process& process, const Step& step) {
  auto published = process.traps->Publish(Entries(step.entries));
  if (published) {
    published_ = true;
    return;
  }
  // While undoing, the entries there are serve as well; and entries too many do no harm.
  if (phase_ != Phase::kForward || step.entries == TrapEntries::kStanding) {
    if (!error_) error_ = std::move(published.error());
    return;
  }
  Fail(std::move(published.error()));
}

void Execution::Write(const Process& process, const Step& step) {
  const Site& site = *sites_[step.site];
  const bool wanted = step.form != Form::kTrap && step.only == StepFor::kCleared;
  if (plan_.mode == SwitchMode::kTrap && phase_ == Phase::kForward && wanted) {
    const bool patch = plan_.direction == Direction::kPatch;
    // What a thread may have run into since; undoing the first round does not undo that.
    past_first_round_ =
        past_first_round_ || (patch ? step.part != Part::kAside : step.part != Part::kHead);
  }
  auto written = process.memory->Write(site.begin() + RangeOf(site, step.part).offset,
                                       BytesOf(site, step.part, step.form));
  Progress& p = progress_[step.site];
  p.unsynced = true;
  const Held held = written ? static_cast<Held>(step.form) : Held::kUnknown;
  switch (step.part) {
    case Part::kHead:
      p.head = held;
      break;
    case Part::kTail:
      p.tail = held;
      break;
    case Part::kAside:
      p.aside = held;
      break;
    case Part::kBranch:
      p.head = p.tail = held;
      break;
  }
  if (written) return;
  if (written.error().kind == ErrorKind::kNotFound) return Leave(step.site, SiteState::kGone);
  if (phase_ == Phase::kForward) return Fail(std::move(written.error()));
  Leave(step.site, StateOf(step.site));
}

void Execution::Sync(const Process& process) {
  auto synced = process.cores->Sync();
  if (synced) return NoteSynced();
  if (phase_ == Phase::kForward) return Fail(std::move(synced.error()));
  // Nothing may be stored on top of what cores may not have seen.
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (progress_[i].active) Leave(i, StateOf(i));
  }
}

void Execution::NoteSynced() {
  for (Progress& p : progress_) p.unsynced = false;
}

std::vector<const Site*> Execution::ActiveSites(std::vector<size_t>& indices) const {
  std::vector<const Site*> sites;
  for (size_t i = 0; i < sites_.size(); ++i) {
    if (!progress_[i].active) continue;
    sites.push_back(sites_[i]);
    indices.push_back(i);
  }
  return sites;
}

void Execution::ClearOut(const Process& process, const Step& step) {
  std::vector<size_t> indices;
  const std::vector<const Site*> sites = ActiveSites(indices);
  auto deferred = process.threads->ClearOut(sites, step.form);
  if (!deferred) {
    if (phase_ == Phase::kForward) return Fail(std::move(deferred.error()));
    // Nobody knows who is where, so what is aside stays.
    deferred.emplace();
    for (size_t i = 0; i < sites.size(); ++i) deferred->push_back(i);
  }
  for (const size_t i : *deferred) {
    if (NeedsClearing(*sites[i], step.form)) progress_[indices[i]].deferred = true;
  }
}

void Execution::Verify(const Process& process, const Step& step) {
  const Site& site = *sites_[step.site];
  if (StateOf(step.site) != SiteState::kOriginal) return;
  std::array<uint8_t, kMaxSiteLength> bytes;
  const std::span<uint8_t> memory(bytes.data(), site.original.length);
  if (auto read = process.memory->Read(site.begin(), memory); !read) {
    if (read.error().kind == ErrorKind::kNotFound) return Leave(step.site, SiteState::kGone);
    if (!error_) error_ = std::move(read.error());
    return;
  }
  if (Assess(site, memory) != MemoryForm::kOriginal) Leave(step.site, SiteState::kModified);
}

std::vector<TrapEntry> Execution::Entries(TrapEntries entries) const {
  std::vector<TrapEntry> all = standing_;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const Site& site = *sites_[i];
    if (entries != TrapEntries::kStanding && progress_[i].active) {
      if (!MayHoldTrap(site)) continue;
      const bool to_stub = entries == TrapEntries::kToStub || site.kind == SiteKind::kTrap;
      all.push_back(to_stub ? EntryToStub(site) : EntryToOutOfLine(site));
      continue;
    }
    if (const auto entry = StandingEntry(site, FinalState(i))) all.push_back(*entry);
  }
  std::ranges::sort(all, {}, &TrapEntry::address);
  return all;
}

SiteState Execution::StateOf(size_t i) const {
  const Site& site = *sites_[i];
  const Progress& p = progress_[i];
  const auto holds = [&](Part part, Held held, Held wanted) {
    return RangeOf(site, part).length == 0 || held == wanted;
  };
  const auto is = [&](Held wanted) {
    return holds(Part::kHead, p.head, wanted) && holds(Part::kTail, p.tail, wanted);
  };
  if (is(Held::kOriginal)) {
    if (!holds(Part::kAside, p.aside, Held::kOriginal)) return SiteState::kAsideLeft;
    return p.deferred ? SiteState::kDeferred : SiteState::kOriginal;
  }
  if (is(Held::kPatched) && holds(Part::kAside, p.aside, Held::kPatched)) {
    return SiteState::kPatched;
  }
  return SiteState::kStuck;
}

// Cores that do not know of a site's last store may meet a trap there.
SiteState Execution::FinalState(size_t i) const {
  const SiteState state = progress_[i].active ? StateOf(i) : states_[i];
  if (!progress_[i].unsynced) return state;
  switch (state) {
    case SiteState::kModified:
    case SiteState::kGone:
      return state;
    default:
      return SiteState::kStuck;
  }
}

void Execution::Leave(size_t i, SiteState state) {
  progress_[i].active = false;
  states_[i] = state;
}

// What each part holds: all of one form, or unknown.
void Execution::NoteForms(size_t i, ByteView memory) {
  const Site& site = *sites_[i];
  const auto held = [&](Part part) {
    const PartRange range = RangeOf(site, part);
    const ByteView there = memory.subspan(range.offset, range.length);
    if (std::ranges::equal(there, BytesOf(site, part, Form::kOriginal))) return Held::kOriginal;
    if (std::ranges::equal(there, BytesOf(site, part, Form::kPatched))) return Held::kPatched;
    if (part == Part::kHead && there[0] == kTrapByte) return Held::kTrap;
    return Held::kUnknown;
  };
  progress_[i].head = held(Part::kHead);
  progress_[i].tail = held(Part::kTail);
  progress_[i].aside = held(Part::kAside);
}

void Execution::Fail(Error error) {
  error_ = std::move(error);
  for (size_t i = 0; i < sites_.size(); ++i) {
    Progress& p = progress_[i];
    p.deferred = false;
    if (p.active && !p.checked) Leave(i, states_[i]);
  }
  if (past_first_round_) {
    phase_ = Phase::kToOriginal;
    plan_ = MakePlan(sites_, Direction::kUnpatch, SwitchMode::kTrap);
    // What is there is known better than it can be read.
    std::erase_if(plan_.steps, [](const Step& step) {
      return step.kind == StepKind::kCheck || step.kind == StepKind::kKeep;
    });
  } else {
    StepBack();
  }
  at_ = 0;
}

void Execution::StepBack() {
  phase_ = Phase::kSteppingBack;
  bool written = false;
  for (size_t i = 0; i < at_; ++i) written = written || plan_.steps[i].kind == StepKind::kWrite;
  for (size_t i = 0; i < sites_.size(); ++i) {
    const Progress& p = progress_[i];
    if (p.active && (!written || p.halfway)) Leave(i, StateOf(i));
  }
  plan_ = MakeStepBack(sites_, plan_);
  // Whoever's entries are published, they are the right ones still.
  if (!published_) {
    std::erase_if(plan_.steps, [](const Step& step) { return step.kind == StepKind::kPublish; });
  }
}

void Execution::Finish() {
  for (size_t i = 0; i < sites_.size(); ++i) {
    Leave(i, FinalState(i));
  }
}

void Execution::AppendKey(std::vector<uint8_t>& key) const {
  key.push_back(static_cast<uint8_t>(phase_));
  key.push_back(static_cast<uint8_t>(plan_.direction));
  key.push_back(static_cast<uint8_t>(plan_.mode));
  key.push_back(static_cast<uint8_t>(at_));
  key.push_back(static_cast<uint8_t>(at_ >> 8));
  key.push_back(static_cast<uint8_t>(past_first_round_ << 1 | stopped_));
  key.push_back(static_cast<uint8_t>(published_ << 1 | error_.has_value()));
  for (size_t i = 0; i < sites_.size(); ++i) {
    const Progress& p = progress_[i];
    key.push_back(static_cast<uint8_t>(p.unsynced << 4 | p.active << 3 | p.checked << 2 |
                                       p.deferred << 1 | p.halfway));
    key.push_back(static_cast<uint8_t>(p.head));
    key.push_back(static_cast<uint8_t>(p.tail));
    key.push_back(static_cast<uint8_t>(p.aside));
    key.push_back(static_cast<uint8_t>(states_[i]));
  }
}

void Execute(Execution& execution, const Process& process) {
  while (execution.next() != nullptr) execution.Advance(process);
}

}  // namespace stackreel::patch
