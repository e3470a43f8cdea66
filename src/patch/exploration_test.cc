#include "patch/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <optional>

#include "base/check.h"

namespace stackreel::patch {
namespace {

enum class Failing : uint8_t { kNo, kNothingDone, kDone, kHalfDone };

// One state, as an executor reaches it.
class SimProcess : public CodeMemory,
                   public CoreSync,
                   public TrapTable,
                   public Threads,
                   public Journal {
 public:
  SimProcess(SimMachine& machine, SimState& state, const ExplorationOptions& options,
             Failing failing)
      : machine_(machine), state_(state), options_(options), failing_(failing) {}

  [[nodiscard]] Process process() { return {this, this, this, this, this}; }

  Status Read(Avma at, std::span<uint8_t> out) override {
    if (failing_ != Failing::kNo) return Failed();
    std::copy_n(state_.memory.begin() + static_cast<long>(at.value - kSimBase), out.size(),
                out.begin());
    return {};
  }
  Status Write(Avma at, ByteView bytes) override {
    size_t count = bytes.size();
    if (failing_ == Failing::kNothingDone) count = 0;
    if (failing_ == Failing::kHalfDone) count /= 2;
    machine_.Write(state_, static_cast<uint16_t>(at.value), bytes.first(count));
    return failing_ == Failing::kNo ? Status() : Failed();
  }
  Status Sync() override {
    if (failing_ != Failing::kNo) return Failed();
    machine_.Sync(state_, options_.cores_synced);
    if (options_.forgets_entries) machine_.Publish(state_, {});
    return {};
  }
  Status Publish(std::span<const TrapEntry> entries) override {
    if (failing_ != Failing::kNo) return Failed();
    machine_.Publish(state_, entries);
    return {};
  }
  // The explorer has let the machine examine its threads, one by one.
  Result<std::vector<size_t>> ClearOut(std::span<const Site* const> sites, Form) override {
    std::vector<size_t> deferred;
    for (size_t i = 0; i < sites.size(); ++i) {
      if ((state_.deferred >> sites[i]->function & 1) != 0) deferred.push_back(i);
    }
    EndClearing();
    if (failing_ != Failing::kNo) return std::unexpected(Failed().error());
    return deferred;
  }
  Status Stop() override {
    if (failing_ != Failing::kNo) return Failed();
    state_.stopped = 1;
    return {};
  }
  Status Resume() override {
    state_.stopped = 0;
    // So Threads::Stop promises; but it is not relied on where nothing fails.
    if (options_.failures) machine_.Sync(state_);
    return failing_ == Failing::kNo ? Status() : Failed();
  }
  Status Keep(std::span<const Site* const>) override {
    return failing_ == Failing::kNo ? Status() : Failed();
  }
  void EndClearing() {
    state_.deferred = 0;
    for (SimThread& thread : state_.threads) thread.examined = 0;
  }

 private:
  static Status Failed() { return Fail(ErrorKind::kIo, "made to fail"); }

  SimMachine& machine_;
  SimState& state_;
  const ExplorationOptions& options_;
  Failing failing_;
};

struct Hash {
  uint64_t a = 0;
  uint64_t b = 0;
  friend bool operator==(const Hash&, const Hash&) = default;
};

// 128 bits: that two of millions of states have the same is out of the question.
template <typename T>
Hash HashOf(const T& value) {
  Hash hash = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f};
  const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
  for (size_t i = 0; i < sizeof(T); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + i, std::min<size_t>(8, sizeof(T) - i));
    hash.a = std::rotl((hash.a ^ word) * 0xff51afd7ed558ccd, 29);
    hash.b = (std::rotl(hash.b, 31) + word) * 0xc4ceb9fe1a85ec53 ^ hash.a;
  }
  hash.a ^= hash.a >> 33;
  hash.b ^= hash.b >> 29;
  return hash;
}

// How a state was reached first.
struct Origin {
  uint32_t parent = 0;
  uint16_t ip = 0;
  uint8_t actor = 0;  // a thread, or kExecutor
  uint8_t what = 0;
};
constexpr uint8_t kExecutor = 0xff;

// An open-addressed set of hashes, with where each came from.
class Visited {
 public:
  // True if it was not in it.
  bool Insert(const Hash& hash, const Origin& origin) {
    if ((hashes_.size() + 1) * 2 > slots_.size()) Grow();
    size_t slot = hash.a & (slots_.size() - 1);
    while (slots_[slot] != 0) {
      if (hashes_[slots_[slot] - 1] == hash) return false;
      slot = (slot + 1) & (slots_.size() - 1);
    }
    hashes_.push_back(hash);
    origins_.push_back(origin);
    slots_[slot] = static_cast<uint32_t>(hashes_.size());
    return true;
  }
  [[nodiscard]] size_t size() const { return hashes_.size(); }
  [[nodiscard]] const Origin& origin(size_t i) const { return origins_[i]; }

 private:
  void Grow() {
    slots_.assign(std::max<size_t>(1024, slots_.size() * 2), 0);
    for (size_t i = 0; i < hashes_.size(); ++i) {
      size_t slot = hashes_[i].a & (slots_.size() - 1);
      while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = static_cast<uint32_t>(i + 1);
    }
  }
  std::vector<uint32_t> slots_;
  std::vector<Hash> hashes_;
  std::vector<Origin> origins_;
};

class Explorer {
 public:
  Explorer(const SimProgram& program, const ExplorationOptions& options)
      : program_(program), options_(options), machine_(program) {
    for (const Site& site : program.sites()) sites_.push_back(&site);
    std::ranges::sort(sites_, {}, &Site::begin);
    executions_.emplace_back(sites_, std::vector<SiteState>(sites_.size()), Plan{},
                             std::vector<TrapEntry>{});  // 0: none
  }

  Exploration Run() {
    Add(machine_.Start(), {});
    while (!queue_.empty() && machine_.violation().empty()) {
      const SimState state = queue_.front();
      queue_.pop_front();
      at_ = taken_++;
      if (taken_ > options_.max_states) machine_.Violate("too many states");
      Expand(state);
    }
    result_.violation = machine_.violation();
    if (!result_.violation.empty()) result_.path = Path();
    result_.states = visited_.size();
    result_.events = machine_.events();
    return std::move(result_);
  }

 private:
  void Expand(const SimState& state) {
    if (state.execution == 0) {
      CheckRest(state);
      Begin(state);
      if (options_.frees || options_.frees_early) FreeSlots(state);
    } else {
      Continue(state);
    }
    if (state.stopped != 0) return;
    for (size_t t = 0; t < program_.threads().size() && machine_.violation().empty(); ++t) {
      last_ = {at_, state.threads[t].now.ip, static_cast<uint8_t>(t), state.threads[t].trap};
      machine_.StepThread(state, t, [&](const SimState& next, bool) { Add(next, last_); });
    }
  }

  void Add(SimState state, const Origin& origin) {
    // Threads that run the same are interchangeable.
    const size_t count = program_.threads().size();
    for (size_t i = 1; i < count; ++i) {
      for (size_t j = i; j > 0; --j) {
        SimThread& a = state.threads[j - 1];
        SimThread& b = state.threads[j];
        // A sync that misses a core tells them apart.
        if (a.script != b.script || options_.cores_synced < count) continue;
        if (std::memcmp(&a, &b, sizeof(a)) > 0) std::swap(a, b);
      }
    }
    if (visited_.Insert(HashOf(state), origin)) queue_.push_back(state);
  }

  uint16_t Intern(const Execution& execution) {
    std::vector<uint8_t> key;
    execution.AppendKey(key);
    const auto [it, added] = ids_.emplace(std::move(key), executions_.size());
    if (added) executions_.push_back(execution);
    return static_cast<uint16_t>(it->second);
  }

  void Begin(SimState state) {
    const auto direction = static_cast<Direction>(state.direction);
    Plan plan = MakePlan(sites_, direction, options_.mode);
    if (options_.change) options_.change(plan);
    if (state.freed != 0) {
      state.freed = 0;
      CopySlots(state, [&](size_t i) { return program_.memory()[i]; });
    }
    state.direction = static_cast<uint8_t>(direction == Direction::kPatch ? Direction::kUnpatch
                                                                          : Direction::kPatch);
    std::vector<SiteState> known;
    for (const Site* site : sites_) {
      const uint8_t there = state.site_state[site->function];
      known.push_back(there == kSimBusy ? SiteState::kStuck : static_cast<SiteState>(there));
    }
    state.site_state.fill(kSimBusy);
    Execution execution(sites_, std::move(known), std::move(plan), {});
    AdvanceTo(state, std::move(execution), Failing::kNo, /*begin=*/true);
  }

  void Continue(const SimState& state) {
    const Execution& execution = executions_[state.execution];
    const Step& step = *execution.next();
    if (options_.kills) Kill(state);
    if (step.kind == StepKind::kClearOut && ExamineThreads(state, execution, step)) return;
    AdvanceTo(state, execution, state.failures == 2 ? Failing::kNothingDone : Failing::kNo);
    if (!options_.failures || state.failures != 0) return;
    for (const uint8_t failures : {1, 2}) {
      SimState failing = state;
      failing.failures = failures;
      AdvanceTo(failing, execution, Failing::kNothingDone);
      if (step.kind != StepKind::kWrite) continue;
      AdvanceTo(failing, execution, Failing::kDone);
      if (options_.mode == SwitchMode::kTrap) AdvanceTo(failing, execution, Failing::kHalfDone);
    }
  }

  // Takes one step that can be seen from outside, and those that cannot up to the next.
  void AdvanceTo(SimState state, Execution execution, Failing failing, bool begin = false) {
    const auto visible = [](const Step& step) {
      return step.kind != StepKind::kKeep && step.kind != StepKind::kCheck &&
             step.kind != StepKind::kVerify;
    };
    // Failing steps of the others are tested one by one elsewhere.
    bool taken = begin;
    while (execution.next() != nullptr && !(taken && visible(*execution.next()))) {
      const Failing now = visible(*execution.next()) ? failing : Failing::kNo;
      taken = taken || visible(*execution.next());
      SimProcess sim(machine_, state, options_, now);
      execution.Advance(sim.process());
    }
    last_ = {at_, static_cast<uint16_t>(Intern(execution)), kExecutor,
             static_cast<uint8_t>(failing)};
    if (execution.next() == nullptr) return Finish(state, execution);
    state.execution = Intern(execution);
    Add(state, last_);
  }

  // Each thread is looked at when the others have gone on for as long as they like. False when all
  // have been.
  bool ExamineThreads(const SimState& state, const Execution& execution, const Step& step) {
    bool any = false;
    std::vector<const Site*> sites = execution.sites();
    for (size_t t = 0; t < program_.threads().size(); ++t) {
      if (state.threads[t].examined != 0) continue;
      any = true;
      for (const bool move : {true, false}) {
        SimState next = state;
        machine_.Examine(next, t, sites, step.form, move);
        last_ = {at_, static_cast<uint16_t>(t), kExecutor, 100};
        Add(next, last_);
      }
    }
    return any;
  }

  void Finish(SimState& state, const Execution& execution) {
    const bool failed = execution.error().has_value();
    const bool patching = state.direction == static_cast<uint8_t>(Direction::kUnpatch);
    for (size_t i = 0; i < sites_.size(); ++i) {
      SiteState site = execution.states()[i];
      // A changed plan's executor is not asked whether all went well.
      if (options_.change && !failed && site == SiteState::kStuck) {
        site = patching ? SiteState::kPatched : SiteState::kOriginal;
      }
      state.site_state[sites_[i]->function] = static_cast<uint8_t>(site);
      switch (site) {
        case SiteState::kPatched:
          ++result_.patched;
          break;
        case SiteState::kOriginal:
          ++result_.unpatched;
          break;
        case SiteState::kDeferred:
          ++result_.deferred;
          break;
        case SiteState::kAsideLeft:
          ++result_.aside_left;
          break;
        case SiteState::kStuck:
          ++result_.stuck;
          if (!failed) machine_.Violate("stuck without a failure");
          break;
        default:
          machine_.Violate("a site was given up");
      }
    }
    if (failed) {
      ++result_.failed;
      state.direction = static_cast<uint8_t>(Direction::kUnpatch);
      if (execution.undoing() && patching) CheckUndone(execution);
    }
    if (state.failures == 2) state.failures = 1;
    state.execution = 0;
    Add(state, last_);
  }

  // A patch that failed has left no site patched.
  void CheckUndone(const Execution& execution) {
    for (const SiteState state : execution.states()) {
      if (state == SiteState::kPatched) machine_.Violate("a failed patch was left half done");
    }
  }

  void Kill(SimState state) {
    ++result_.killed;
    SimProcess sim(machine_, state, options_, Failing::kNo);
    sim.EndClearing();
    if (state.stopped != 0) {
      // They have been in the kernel since (see Threads::Stop).
      state.stopped = 0;
      machine_.Sync(state);
    }
    state.execution = 0;
    state.direction = static_cast<uint8_t>(Direction::kUnpatch);
    state.site_state.fill(kSimBusy);
    last_ = {at_, 0, kExecutor, 101};
    Add(state, last_);
  }

  void CopySlots(SimState& state, auto&& byte) {
    for (size_t i = kSimOutOfLine - kSimBase; i < kSimEndOfSlots - kSimBase; ++i)
      state.memory[i] = byte(i);
  }

  void FreeSlots(SimState state) {
    if (state.freed != 0) return;
    for (const Site* site : sites_) {
      if (state.site_state[site->function] != static_cast<uint8_t>(SiteState::kOriginal)) return;
    }
    const bool met = SimMachine::MayMeet(state, program_.threads().size(), kSimOutOfLine,
                                         kSimEndOfSlots - kSimOutOfLine);
    if (met && !options_.frees_early) return;
    ++result_.freed;
    CopySlots(state, [](size_t) { return kSimFreed; });
    state.freed = 1;
    last_ = {at_, 0, kExecutor, 102};
    Add(state, last_);
  }

  // No batch is under way: memory is what the sites are said to be, and every thread comes on.
  void CheckRest(const SimState& state) {
    for (const Site* site : sites_) {
      const ByteView memory =
          ByteView(state.memory).subspan(site->begin().value - kSimBase, site->original.length);
      const MemoryForm form = Assess(*site, memory);
      const uint8_t known = state.site_state[site->function];
      const auto is = [&](SiteState s) { return known == static_cast<uint8_t>(s); };
      const bool right = is(SiteState::kPatched) ? form == MemoryForm::kPatched
                         : is(SiteState::kAsideLeft)
                             ? form == MemoryForm::kAsideLeft || form == MemoryForm::kOriginal
                         : is(SiteState::kOriginal) || is(SiteState::kDeferred)
                             ? form == MemoryForm::kOriginal
                             : form != MemoryForm::kForeign;
      if (!right) machine_.Violate("memory is not what the site is said to be");
      if (memory[site->before] == kTrapByte &&
          FindTrap(machine_.table(state.table), site->address) == nullptr) {
        machine_.Violate("a trap without an entry was left");
      }
    }
    for (size_t t = 0; t < program_.threads().size(); ++t) CheckProgress(state, t);
  }

  // Thread `t`, alone, does something after a few steps, whatever its core sees.
  void CheckProgress(const SimState& state, size_t t) {
    SimState alone = state;
    alone.threads = {};
    alone.threads[0] = state.threads[t];
    alone.threads[0].in_handler = 1;  // being interrupted is no progress
    alone.site_state.fill(kSimBusy);
    alone.direction = alone.failures = alone.freed = 0;
    if (!progressing_.Insert(HashOf(alone), {})) return;
    SimState start = state;
    std::vector<SimState> reached = {start};
    for (int steps = 0; !reached.empty() && machine_.violation().empty(); ++steps) {
      if (steps == 40) return machine_.Violate("a thread does not come on");
      std::vector<SimState> next;
      for (SimState& from : reached) {
        const uint8_t handler = from.threads[t].in_handler;
        machine_.StepThread(from, t, [&](const SimState& to, bool did) {
          if (!did && to.threads[t].in_handler == handler) next.push_back(to);
        });
      }
      reached = std::move(next);
    }
  }

  std::string Path() const {
    std::vector<std::string> lines;
    std::vector<Origin> origins = {last_};
    while (origins.back().parent != 0) origins.push_back(visited_.origin(origins.back().parent));
    std::ranges::reverse(origins);
    std::string path;
    for (const Origin& origin : origins) {
      if (origin.actor != kExecutor) {
        path += fmt::format("thread {}: {:#x}{}\n", origin.actor, origin.ip,
                            origin.what != 0 ? fmt::format(" trap {}", origin.what) : "");
      } else if (origin.what == 100) {
        path += fmt::format("examine thread {}\n", origin.ip);
      } else if (origin.what > 100) {
        path += origin.what == 101 ? "kill\n" : "free\n";
      } else {
        const Step* next = executions_[origin.ip].next();
        path += fmt::format(
            "executor, up to: {}{}",
            next == nullptr ? "end\n"
                            : ToString(Plan{Direction::kPatch, SwitchMode::kTrap, {*next}}, sites_),
            origin.what != 0 ? " (failing)\n" : "");
      }
    }
    return path;
  }

  const SimProgram& program_;
  const ExplorationOptions& options_;
  SimMachine machine_;
  std::vector<const Site*> sites_;
  std::deque<Execution> executions_;  // references stay good
  std::map<std::vector<uint8_t>, size_t> ids_;
  std::deque<SimState> queue_;
  Visited visited_;
  Visited progressing_;
  Exploration result_;
  Origin last_;
  uint32_t at_ = 0;
  uint32_t taken_ = 0;
};

}  // namespace

Exploration Explore(const SimProgram& program, const ExplorationOptions& options) {
  return Explorer(program, options).Run();
}

}  // namespace stackreel::patch
