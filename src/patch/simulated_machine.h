// Test code: a machine of a few threads that runs a few x86 instructions, and that can be stopped
// between any two. What makes it a good place to be patched in is all that it does not promise:
//
// * Every thread has a core of its own. A store to code reaches a core at any time until that core
//   has serialised: until then each fetch sees, byte by byte, memory with any of these stores or
//   without. That contains fetching early and executing late, and cores that disagree.
// * A store of one byte is seen or not seen; of several bytes, each by itself.
// * A thread is interrupted between any two instructions by a handler that runs the program's code
//   and returns; a system call ends or is restarted.
// * An int3 is a trap whose handler runs when it likes, one memory access at a time; it decides by
//   trap.h. Returning from it serialises its core.
//
// What is checked at each instruction: it is one that somebody wrote at that place, whole; what
// the thread does (push, move, call, return, …) is what the unpatched program does, in that order;
// a function whose entry was reached while its site was at rest is recorded once if it was patched,
// and not if it was not.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "patch/execute.h"
#include "patch/hex.h"
#include "patch/site.h"

namespace stackreel::patch {

inline constexpr uint16_t kSimBase = 0x4000;
inline constexpr size_t kSimSize = 0x100;
// From here on is what was mapped for patching: stubs, relocated code.
inline constexpr uint16_t kSimOutOfLine = 0x4080;
inline constexpr uint16_t kSimEndOfSlots = 0x40f0;  // what is behind stays
inline constexpr size_t kSimMaxThreads = 3;
inline constexpr size_t kSimMaxStores = 32;

// Stand-ins for what takes more than the machine has: an agent recording an entry (followed by a
// byte for the site), the return from a signal handler, and memory that was freed.
inline constexpr uint8_t kSimRecord = 0xf1;
inline constexpr uint8_t kSimSignalReturn = 0xf5;
inline constexpr uint8_t kSimFreed = 0xf4;

// What is fixed: code, sites, and what each thread runs.
class SimProgram {
 public:
  SimProgram();
  // Instructions, one a string, from `at` on; each may be run as it stands there. Returns the
  // address behind them.
  uint16_t Code(uint16_t at, const std::vector<std::string>& instructions);
  // Completes the patched form, its code at `stub` (record, then `then`), and the site.
  // `instructions` of the original must be in memory already.
  void AddSite(Site site, const std::vector<std::string>& stub_then);
  // A thread that runs the endless loop at `start`; with a handler, it may be interrupted.
  void AddThread(uint16_t start, uint16_t handler = 0);
  // What the threads do while nothing is patched; call it last.
  void Finish();

  struct Thread {
    uint16_t start = 0;
    uint16_t handler = 0;
    std::vector<uint32_t> does;          // in a loop
    std::vector<uint32_t> handler_does;  // once
  };
  [[nodiscard]] const std::array<uint8_t, kSimSize>& memory() const { return memory_; }
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }
  [[nodiscard]] const std::vector<Thread>& threads() const { return threads_; }
  // Whether these bytes are an instruction that may be run at `at`.
  [[nodiscard]] bool MayRun(uint16_t at, ByteView instruction) const;
  // Whether the program has an int3 of its own there.
  [[nodiscard]] bool HasTrap(uint16_t at) const;
  // -1 if no site begins there.
  [[nodiscard]] int SiteAt(uint16_t address) const;

 private:
  [[nodiscard]] std::vector<uint32_t> Reference(uint16_t start) const;

  std::array<uint8_t, kSimSize> memory_;
  std::array<std::vector<std::vector<uint8_t>>, kSimSize> may_run_;
  std::array<bool, kSimSize> own_trap_ = {};
  std::vector<Site> sites_;
  std::vector<Thread> threads_;
};

// All state of a run is plain bytes without padding, so that it can be hashed and compared.
struct SimContext {
  uint16_t ip = 0;
  uint8_t position = 0;  // in what the thread should do
  uint8_t entered = 0;   // 0, or 1 + the site at whose address it was last; until it does something
  uint8_t expected = 0;  // records since: 0 none, 1 one, 2 either
  uint8_t recorded = 0;
  uint8_t in_syscall = 0;  // ip is behind it
  uint8_t unused = 0;
};
struct SimThread {
  SimContext now;
  SimContext interrupted;  // in_handler: where its signal frame leads
  std::array<uint16_t, 6> stack = {};
  uint8_t depth = 0;
  uint8_t script = 0;
  uint8_t in_handler = 0;
  uint8_t trap = 0;          // TrapPhase
  uint8_t table = 0;         // that its trap handler has loaded
  uint8_t table_is_old = 0;  // another was published since
  uint8_t synced_to = 0;     // its core has seen the stores before this one for sure
  uint8_t examined = 0;      // by the clearing under way
};
enum class TrapPhase : uint8_t { kNone, kPending, kLoaded, kLookAgain };

struct SimStore {
  uint16_t at = 0;
  uint8_t before = 0;
  uint8_t after = 0;
};
struct SimState {
  std::array<uint8_t, kSimSize> memory = {};
  std::array<SimStore, kSimMaxStores> stores = {};  // those that not all cores have seen
  std::array<SimThread, kSimMaxThreads> threads = {};
  uint16_t execution = 0;  // of the explorer; 0: none
  uint8_t store_count = 0;
  uint8_t table = 0;
  uint8_t stopped = 0;
  uint8_t deferred = 0;  // sites, by bit: of the clearing under way
  // Of the explorer: what each site is known to be (SiteState, or kSimBusy), and the rest.
  std::array<uint8_t, 2> site_state = {};
  uint8_t direction = 0;  // of the next batch
  uint8_t failures = 0;   // 0 may begin; 1 over; 2 everything fails
  uint8_t freed = 0;
  uint8_t unused = 0;
};
static_assert(std::has_unique_object_representations_v<SimState>);
inline constexpr uint8_t kSimBusy = 0xff;

// What happened in a run, so that a test can see that it was not an empty one.
struct SimEvents {
  uint64_t traps_gone_on = 0;
  uint64_t traps_retried = 0;
  uint64_t traps_looked_again = 0;
  uint64_t own_traps = 0;
  uint64_t recorded = 0;
  uint64_t moved = 0;
  uint64_t deferred = 0;
};

class SimMachine {
 public:
  explicit SimMachine(const SimProgram& program) : program_(program) {}

  [[nodiscard]] SimState Start() const;
  // Each state that one step of thread `t` can lead to is handed over, with whether the thread did
  // something that the program would do. A violation is noted, and ends the run.
  using Sink = std::function<void(const SimState&, bool did_something)>;
  void StepThread(const SimState& state, size_t t, const Sink& sink);

  // What an executor can do.
  void Write(SimState& state, uint16_t at, ByteView bytes) const;
  void Sync(SimState& state, size_t cores = kSimMaxThreads) const;
  void Publish(SimState& state, std::span<const TrapEntry> entries);
  // Examines thread `t` for a clearing; `move`: else what could be moved is deferred.
  void Examine(SimState& state, size_t t, std::span<const Site* const> sites, Form inside,
               bool move);
  // Whether a thread may come to [from, from + size) by itself, nothing leading there any more.
  [[nodiscard]] static bool MayMeet(const SimState& state, size_t threads, uint16_t from,
                                    uint16_t size);

  [[nodiscard]] const std::string& violation() const { return violation_; }
  void Violate(std::string what);
  [[nodiscard]] const SimEvents& events() const { return events_; }
  [[nodiscard]] std::span<const TrapEntry> table(uint8_t id) const { return tables_[id]; }
  [[nodiscard]] const SimProgram& program() const { return program_; }
  // From here on what threads do is written down, not checked.
  void Record(std::vector<uint32_t>* does) { recording_ = does; }

 private:
  void Execute(SimState& state, size_t t, ByteView instruction, const Sink& sink);
  void Do(SimThread& thread, uint32_t what);
  void EnterSite(SimState& state, SimThread& thread) const;
  void StepTrap(SimState& state, SimThread& thread, const Sink& sink);
  void Fetch(const SimState& state, const SimThread& thread,
             const std::function<void(ByteView)>& each);

  const SimProgram& program_;
  std::vector<std::vector<TrapEntry>> tables_ = {{}};
  SimEvents events_;
  std::string violation_;
  std::vector<uint32_t>* recording_ = nullptr;
};

// The length of an instruction that begins so; 0 if there is none. `size` bytes are known; more are
// asked for by a length greater than that.
[[nodiscard]] size_t SimLength(ByteView begin);

}  // namespace stackreel::patch
