// Which functions of a target are patched: from patterns to sites, and their state.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/io.h"
#include "patch/site_set.h"
#include "tracedata/trace_facts.h"
#include "tracer/function_pattern.h"
#include "tracer/installed_agent.h"
#include "tracer/site_plan.h"
#include "tracer/target.h"
#include "tracer/target_modules.h"
#include "tracer/target_process.h"
#include "tracer/target_rooms.h"

namespace stackreel::tracer {

// Takes what the trace is to say. Called before the functions spoken of can be recorded.
using FactSink = std::function<Status(const tracedata::TraceFact&)>;

// What a change came to. Functions that walk stacks are patched for themselves and do not count.
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
  PatchedFunctions(Target& target, FactSink facts, Executor& executor);
  // Once, before anything is patched.
  void UseAgent(const AgentPlace& agent);

  // Finds out what is mapped. Again after a library was loaded.
  Status ReadModules();
  // Whether each pattern matches something; an error as Apply gives it.
  Status Check(std::span<const PatternChoice> patterns);
  // Patches what the patterns name, unpatches what they name to unpatch. kNotFound, with near
  // names, if a pattern matches nothing; then nothing is done.
  Result<PatchCounts> Apply(std::span<const PatternChoice> patterns);
  // Another try for what threads stood in the way of.
  Result<PatchCounts> Retry();
  // Unpatches all that record, or (when no return address is hijacked any more) those that walk
  // stacks. Call it again while it says that some are left.
  enum class Which : uint8_t { kRecording, kStackWalkers };
  Result<PatchCounts> UnpatchAll(Which which);
  // Sites whose memory does not hold what the file has. Afterwards there should be none.
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
    bool named = false;  // by the user
    bool walks_stack = false;
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

  Result<Choices> Choose(std::span<const PatternChoice> patterns);
  Status CheckMatches(std::span<const PatternChoice> patterns, const std::vector<size_t>& matches);
  [[nodiscard]] Error NothingMatches(const PatternChoice& choice) const;
  Result<Function*> Register(size_t module, const ModuleFunction& function);
  Status PlanAll(const Wishes& wishes);
  Status AddSite(const PlannedSite& planned);
  Status AddStackWalkers(Wishes& wishes);
  Status Patch(const FunctionList& functions, PatchCounts& counts);
  Status Unpatch(const FunctionList& functions, PatchCounts& counts);
  [[nodiscard]] std::vector<size_t> SitesOf(const FunctionList& functions) const;
  [[nodiscard]] Function& FunctionOf(size_t site);
  [[nodiscard]] const Function& FunctionOf(size_t site) const;
  void Take(const patch::Outcome& outcome, PatchCounts& counts);
  void CountPatched(std::span<Function* const> wanted, PatchCounts& counts) const;
  Status LogPatch(std::span<const size_t> sites, tracedata::PatchEvent::Action action);
  Status Log(tracedata::PatchEvent::Action action, uint32_t function, std::string reason);

  Target& target_;
  FactSink facts_;
  Executor& executor_;
  std::optional<TargetRooms> rooms_;
  std::optional<TargetProcess> process_;
  PlanOptions plan_options_;
  std::vector<TargetModule> modules_;
  std::vector<bool> module_told_;
  std::vector<std::pair<uint64_t, uint64_t>> mapped_code_;  // start and inode
  std::map<Key, Function> functions_;
  std::map<uint32_t, Key> by_id_;
  uint32_t next_function_ = 1;
  patch::SiteSet sites_;
  bool has_stack_walkers_ = false;
};

// rdtsc, as the agent counts time.
uint64_t NowTicks();

}  // namespace stackreel::tracer
