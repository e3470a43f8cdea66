// Which functions of a target are patched: from patterns to sites, and their state.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/io.h"
#include "patch/site_set.h"
#include "tracedata/action_table.h"
#include "tracedata/trace_facts.h"
#include "tracer/call_filters.h"
#include "tracer/function_choice.h"
#include "tracer/function_numbers.h"
#include "tracer/function_values.h"
#include "tracer/installed_agent.h"
#include "tracer/site_plan.h"
#include "tracer/target.h"
#include "tracer/target_modules.h"
#include "tracer/target_process.h"
#include "tracer/target_rooms.h"

namespace stackreel::tracer {

// Takes what the trace is to say. Called before the functions spoken of can be recorded.
using FactSink = std::function<Status(const tracedata::TraceFact&)>;

// What a change came to. Functions that are needed (they walk the
// stack, or tell what was loaded) do not count.
struct PatchCounts {
  size_t matched = 0;  // functions the patterns are about
  size_t patched = 0;
  size_t unpatched = 0;
  size_t deferred = 0;  // a thread stood in the way; another try may do
  std::vector<std::pair<std::string, size_t>> refused;  // by reason, most first
  std::string error;  // of a step that failed, what was done having been undone
};

struct SiteCounts {
  std::map<std::string, size_t> by_state;  // of sites
  std::map<std::string, size_t> by_kind;   // of sites that are patched
  std::map<std::string, size_t> refused;   // of functions, by reason
  size_t functions = 0;                    // that were named
};

class PatchedFunctions {
 public:
  // `use_traps`: functions that nothing else can be put at get a trap (see WhyNoTraps).
  PatchedFunctions(Target& target, FactSink facts, FunctionNumbers& numbers, Executor& executor,
                   bool use_traps);
  // What is recorded of the calls, beside their times; before anything else. It must outlive this.
  void UseValues(FunctionValues& values) { values_ = &values; }
  // Once, before anything is patched. With `always_needed`, functions that tracing itself needs are
  // patched even if no other is.
  void UseAgent(const AgentPlace& agent, bool always_needed = false);

  // Whether each pattern matches something; an error as Apply gives it. Reads all code that will be
  // needed.
  Status Check(std::span<const PatternChoice> patterns, bool each_must_match = true);
  // Takes the memory in the target that patching what Check() has looked at needs. While the target
  // is held anyway, so that it need not be held once more.
  Status Reserve();
  // Plans the sites of what patterns name, so that Apply() of them only switches. While the target
  // runs; nothing of it is changed but memory of ours.
  Status Prepare(std::span<const PatternChoice> patterns);
  // Patches what the patterns name, unpatches what they name to unpatch. kNotFound, with near
  // names, if a pattern matches nothing; then nothing is done. A pattern for a module that is not
  // mapped waits for it, where there is a dynamic linker. They stay in force: what is loaded later
  // is patched as they say, the last that matches deciding.
  Result<PatchCounts> Apply(std::span<const PatternChoice> patterns);
  // The same for patterns of another program: those that match nothing here stay in force.
  Result<PatchCounts> TakeOver(std::span<const PatternChoice> patterns);
  [[nodiscard]] std::span<const PatternChoice> in_force() const { return in_force_; }
  // Those of all patterns so far that something has matched.
  [[nodiscard]] const std::set<std::string>& matched() const { return matched_; }
  // Whether each pattern of the filters matches something; an error as SetFilters gives it.
  Status CheckFilters(const CallFilters& filters);
  // Puts these in force, instead of those that were. Their functions are patched for it, and
  // counted; but recorded only if a pattern named them, or -F or -C did. kNotFound if a pattern
  // matches nothing and `each_must_match`; then nothing is done. `ticks_per_second` is the clock's
  // (NowTicks).
  Result<PatchCounts> SetFilters(CallFilters filters, uint64_t ticks_per_second,
                                 bool each_must_match);
  [[nodiscard]] const CallFilters& filters() const { return filters_; }
  // How many functions each of filters().options is about.
  [[nodiscard]] std::span<const size_t> filter_matches() const { return filter_matches_; }
  // Sees to what was loaded and unloaded since the last look. Sites of what is not mapped any more
  // are forgotten: whatever is mapped there next is not written to.
  Result<PatchCounts> FollowLibraries();
  // Only the first half of that: forgets the sites of what is not mapped any more.
  Status ReadModules();
  // Whether the program's dynamic linker tells of changes by itself; else one has to look.
  [[nodiscard]] bool HearsOfLibraries() const;
  // Patterns for modules that have not been mapped yet.
  [[nodiscard]] std::vector<std::string> Awaited() const;
  // Another try for what threads stood in the way of.
  Result<PatchCounts> Retry();
  // Whether traps are as safe as when they were put in. If not they are taken out again, and their
  // functions refused.
  Status WatchTraps();
  // The same if they are known not to be: none is put in any more.
  Status GiveUpTraps(const std::string& why);
  // Unpatches all that record, or (when no return address is hijacked any more) those that walk
  // stacks. Call it again while it says that some are left.
  enum class Which : uint8_t { kRecording, kStackWalkers };
  Result<PatchCounts> UnpatchAll(Which which);
  // Sites whose memory does not hold what the file has, though nobody else has written there.
  // Afterwards there should be none.
  [[nodiscard]] size_t CountModified() const;

  // Sites whose memory holds what neither the file nor we have.
  [[nodiscard]] size_t CountForeign() const;

  [[nodiscard]] SiteCounts Count() const;
  [[nodiscard]] const patch::SiteSet& sites() const { return sites_; }

 private:
  struct Function {
    uint32_t id = 0;
    std::optional<size_t> site;  // in sites_
    std::string refused;
    bool named = false;   // by the user, to be recorded
    bool wanted = false;  // the same, or to act
    // Patched whenever anything is: it walks the stack, or tells what was loaded.
    bool is_needed = false;
    bool recorded = false;           // named by the user, and not to be unpatched since
    tracedata::CallActions actions;  // PublishActions puts them in force
  };
  struct Key {
    size_t module = 0;
    Svma start;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  using FunctionList = std::vector<std::pair<size_t, const ModuleFunction*>>;  // with its module
  struct Choices {
    FunctionList patch, unpatch;
  };
  using Wishes = std::map<size_t, std::vector<SiteWish>>;  // by module

  std::vector<Function*> PlannedIn(size_t module);
  void NoteUnmapped(size_t module);
  void NoteMappedAgain(size_t module);
  void NoteReloaded();
  void KeepInForce(std::span<const PatternChoice> patterns);
  [[nodiscard]] bool MayComeLater(const FunctionPattern& pattern) const;
  Status AddLinkerStub(Wishes& wishes);
  void NoteName(size_t module, const ModuleFunction& function, const FunctionPattern& pattern);
  Result<Choices> Choose(std::span<const PatternChoice> patterns, bool each_must_match);
  Choices ChooseIn(const std::set<size_t>& modules, std::span<const PatternChoice> patterns,
                   std::vector<bool>& matched);
  Result<PatchCounts> ApplyChosen(std::span<const PatternChoice> patterns, const Choices& choices);
  enum class Values : uint8_t { kNone, kAsAsked };
  Result<Function*> Register(size_t module, const ModuleFunction& function,
                             Values values = Values::kNone);
  // With the values that were asked for, if it can be recorded.
  Result<Function*> RegisterNamed(size_t module, const ModuleFunction& function);
  [[nodiscard]] Status CheckValues(const FunctionList& functions) const;
  Status PlanAll(const Wishes& wishes);
  Status AddSite(size_t module, const PlannedSite& planned);
  void ReadModulesOfNeeded();
  Status AddNeeded(Wishes& wishes);
  // Why functions are patched.
  enum class For : uint8_t { kRecording, kActing };
  Result<std::vector<Function*>> Plan(const FunctionList& functions, For what);
  Status Patch(const FunctionList& functions, For what, PatchCounts& counts);
  Status Unpatch(const FunctionList& functions, PatchCounts& counts);
  Status UnpatchSites(std::vector<size_t> sites, PatchCounts& counts);
  Status PublishActions();
  FunctionList MatchesOf(const FunctionPattern& pattern, const std::set<size_t>& modules);
  [[nodiscard]] std::set<size_t> AllModules() const;
  Status ActIn(const std::set<size_t>& modules, FunctionList& acting);
  Result<uint8_t> DurationNumber(uint64_t ticks);
  bool MarkUnrecorded(bool idle);
  Status MarkRecorded(const FunctionList& functions, bool recorded);
  static bool Acts(const Function& function);
  Status WriteCommonFilters();
  Status UnpatchIdle(PatchCounts& counts);
  [[nodiscard]] uint64_t TicksOf(uint64_t nanoseconds) const {
    return static_cast<uint64_t>(static_cast<double>(nanoseconds) * 1e-9 *
                                 static_cast<double>(ticks_per_second_));
  }
  [[nodiscard]] std::vector<size_t> SitesOf(const FunctionList& functions) const;
  [[nodiscard]] Function& FunctionOf(size_t site);
  [[nodiscard]] const Function& FunctionOf(size_t site) const;
  patch::Outcome Switch(patch::Direction direction, std::span<const size_t> sites);
  [[nodiscard]] std::vector<size_t> TrapsInUse() const;
  Status TakeTrapsOut(std::span<const size_t> traps, const std::string& why);
  patch::Outcome SwitchByTrap(patch::Direction direction, std::span<const size_t> sites);
  void Take(const patch::Outcome& outcome, PatchCounts& counts);
  void CountPatched(std::span<Function* const> wanted, PatchCounts& counts) const;
  Status Refuse(Function& function, std::string reason);
  [[nodiscard]] std::string WhyNotPatched(const Function& function) const;
  Status LogPatch(std::span<const size_t> sites, tracedata::PatchEvent::Action action);
  Status Log(tracedata::PatchEvent::Action action, uint32_t function, std::string reason);

  Target& target_;
  FactSink facts_;
  FunctionNumbers& numbers_;
  Executor& executor_;
  FunctionValues* values_ = nullptr;  // null: none are recorded
  bool actions_changed_ = false;      // since they were published
  std::optional<TargetRooms> rooms_;
  std::optional<TargetProcess> process_;
  PlanOptions plan_options_;
  bool use_traps_;
  bool traps_given_up_ = false;
  AgentPlace agent_;
  bool always_needed_ = false;
  std::vector<TargetModule> modules_;
  std::set<size_t> fresh_;  // modules that no pattern has been compared with since they were mapped
  std::vector<PatternChoice> in_force_;
  std::set<std::string> matched_;                           // texts of patterns
  std::vector<std::pair<uint64_t, uint64_t>> mapped_code_;  // start and inode
  std::map<Key, Function> functions_;
  std::map<std::pair<size_t, uint32_t>, Key> by_id_;  // with its module
  std::map<Key, std::string> names_;                  // of those that have several: who named them
  tracedata::ActionSet common_actions_;               // all but what each function has
  uint64_t ticks_per_second_ = 1'000'000'000;
  CallFilters filters_;
  std::vector<size_t> filter_matches_;  // of each of its options
  patch::SiteSet sites_;
  std::vector<Key> site_keys_;         // whose each site is
  std::optional<Key> linker_;          // the function of the dynamic linker
  std::map<size_t, size_t> expected_;  // functions to be patched, by module
};

}  // namespace stackreel::tracer
