// Executes a plan in a running process: the order of stores, synchronisation and thread moves in
// which no thread can ever run a mixture of old and new bytes. See plan.h for that order.
//
// Generic over the process: memory, cores, traps and threads are handed in, so that tests run it
// against a simulated machine that stops between any two steps (simulated_machine.h), and a
// tracer runs it against a live process. No system call, no clock. It runs in the tracer and
// allocates; what an agent runs in the traced process is trap.h, quiesce.h and the data of site.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "patch/plan.h"
#include "patch/site.h"
#include "patch/trap.h"

namespace stackreel::patch {

// The code of the process. Both fail with the kernel's reason, and with kNotFound where nothing is
// mapped any more: then the site is gone, and the batch goes on without it.
class CodeMemory {
 public:
  virtual ~CodeMemory() = default;
  virtual Status Read(Avma at, std::span<uint8_t> out) = 0;
  // One store as cores see it only where `bytes` is one byte; else cores may see any mixture of
  // bytes until the next Sync. (Nor are two aligned bytes one store: the kernel copies them one by
  // one.) When it fails, any of the bytes may have been stored; all or none within a page.
  virtual Status Write(Avma at, ByteView bytes) = 0;
};

// After Sync returns, each core that runs the process has executed a serialising instruction since
// Sync was called (membarrier(2), PRIVATE_EXPEDITED_SYNC_CORE, or what stands in for it).
class CoreSync {
 public:
  virtual ~CoreSync() = default;
  virtual Status Sync() = 0;
};

// The table that the trap handler of the process reads; see trap.h for what a handler may rely on.
class TrapTable {
 public:
  virtual ~TrapTable() = default;
  // `entries` are all there are from now on, by address. When it fails, those before still are.
  virtual Status Publish(std::span<const TrapEntry> entries) = 0;
};

// The threads of the process, all of them, those included that begin while this runs.
class Threads {
 public:
  virtual ~Threads() = default;
  // Moves each thread and each interrupted context on its stack as DecideClearing (quiesce.h) says.
  // Returns the indices of the sites that could not be cleared now, ascending; nothing is forced:
  // if a thread does not answer in time, that is each site it could be in.
  virtual Result<std::vector<size_t>> ClearOut(std::span<const Site* const> sites, Form inside) = 0;
  // Stops them all until Resume. If it fails, none is left stopped. Between the two ClearOut finds
  // them stopped. A thread that goes on after a stop, be it that the tracer died or that Sync
  // fails, has been scheduled and left the kernel since, so it fetches what memory holds.
  virtual Status Stop() = 0;
  virtual Status Resume() = 0;
};

// Where another process finds the sites if this one dies halfway (see journal.h): the sites and
// what memory holds are enough to finish, so it says nothing of how far a batch has come.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual Status Keep(std::span<const Site* const> sites) = 0;
};

// The process being patched, put together by whoever can reach it.
struct Process {
  CodeMemory* memory = nullptr;
  CoreSync* cores = nullptr;
  TrapTable* traps = nullptr;
  Threads* threads = nullptr;
  Journal* journal = nullptr;
};

enum class SiteState : uint8_t {
  kOriginal,
  kPatched,
  kDeferred,   // wanted patched, left original: a thread was inside and could not be moved
  kAsideLeft,  // runs as the original, but a thread is on the landing, so the rest is still there
  kModified,   // left alone: memory was neither the original nor what we had written
  kStuck,      // a step failed and so did undoing it: a trap may be met, and its entry stays, which
               // makes the site act as the original. Unpatching it again may help
  kGone,       // its memory is not mapped any more
};
[[nodiscard]] std::string_view ToString(SiteState state);

// What a thread that meets a trap at a site does.
[[nodiscard]] TrapEntry EntryToStub(const Site& site);
[[nodiscard]] TrapEntry EntryToOutOfLine(const Site& site);
// The entry that a site at rest needs, as its trap stays or may be met; nothing for most.
[[nodiscard]] std::optional<TrapEntry> StandingEntry(const Site& site, SiteState state);

// One batch on its way. Steps are taken one by one by whoever wants to look in between; Execute()
// takes them all. Copyable; the sites must outlive it.
//
// When a step fails, what was done is undone. Patching ends with every site original, or kStuck
// where undoing failed too. So does unpatching, but for a failure before any tail is written, which
// leaves every site as it was.
class Execution {
 public:
  // `sites` are sorted by begin(), do not overlap, passed CheckSite, and RefusedBy is silent.
  // `known` are their states; kStuck for a site that another process has left in a state unknown.
  // `standing` are the entries of traps at other sites; they stay published throughout.
  Execution(std::vector<const Site*> sites, std::vector<SiteState> known, Direction direction,
            SwitchMode mode, std::vector<TrapEntry> standing);
  // The same with a plan that is not MakePlan's.
  Execution(std::vector<const Site*> sites, std::vector<SiteState> known, Plan plan,
            std::vector<TrapEntry> standing);

  // The next step, null if there is none. Steps that have become idle are passed over.
  [[nodiscard]] const Step* next() const;
  // Takes it.
  void Advance(const Process& process);

  // States count once next() is null.
  [[nodiscard]] const std::vector<SiteState>& states() const { return states_; }
  // The first failure; what followed from it is in the states.
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] const std::vector<const Site*>& sites() const { return sites_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] bool undoing() const { return phase_ != Phase::kForward; }
  // Distinguishes any two executions of the same sites and plans that can go on differently.
  void AppendKey(std::vector<uint8_t>& key) const;

 private:
  // What a part of a site is known to hold.
  enum class Held : uint8_t { kOriginal, kPatched, kTrap, kUnknown };
  struct Progress {
    bool active = true;  // else it is left alone from here on, its state is final
    bool checked = false;
    bool deferred = false;
    bool halfway = false;   // as an execution that died left it
    bool unsynced = false;  // stored to since the last sync
    Held head = Held::kUnknown;
    Held tail = Held::kUnknown;
    Held aside = Held::kUnknown;
  };
  enum class Phase : uint8_t {
    kForward,
    kSteppingBack,  // undoing the first round
    kToOriginal,    // undoing more
  };

  [[nodiscard]] bool IsIdle(const Step& step) const;
  void SkipIdle();
  void Keep(const Process& process);
  void Check(const Process& process, const Step& step);
  void Publish(const Process& process, const Step& step);
  void Write(const Process& process, const Step& step);
  void Sync(const Process& process);
  void ClearOut(const Process& process, const Step& step);
  void Verify(const Process& process, const Step& step);
  [[nodiscard]] std::vector<const Site*> ActiveSites(std::vector<size_t>& indices) const;
  [[nodiscard]] std::vector<TrapEntry> Entries(TrapEntries entries) const;
  [[nodiscard]] SiteState StateOf(size_t i) const;
  [[nodiscard]] SiteState FinalState(size_t i) const;
  void NoteSynced();
  void Leave(size_t i, SiteState state);
  void NoteForms(size_t i, ByteView memory);
  void Fail(Error error);
  void StepBack();
  void Finish();

  std::vector<const Site*> sites_;
  std::vector<TrapEntry> standing_;
  Plan plan_;
  size_t at_ = 0;
  Phase phase_ = Phase::kForward;
  bool past_first_round_ = false;
  bool stopped_ = false;
  bool published_ = false;
  std::vector<Progress> progress_;
  std::vector<SiteState> states_;
  std::optional<Error> error_;
};

void Execute(Execution& execution, const Process& process);

}  // namespace stackreel::patch
