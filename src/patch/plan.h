// A batch of sites and what is done to them, step by step: as data, that a test prints, changes and
// runs, and that the executor follows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "patch/site.h"

namespace stackreel::patch {

enum class Direction : uint8_t { kPatch, kUnpatch };

// How a batch is kept from meeting threads.
enum class SwitchMode : uint8_t {
  kTrap,     // the process runs on; a thread that comes to a site meets an int3
  kStopped,  // all threads are stopped: for a process in which a thread blocks SIGTRAP
};

enum class StepKind : uint8_t {
  kKeep,      // the batch's sites, where another process finds them if this one dies
  kStop,      // every thread
  kCheck,     // memory holds what it should; a site where it does not is left alone
  kPublish,   // the trap table
  kWrite,     // one part of one site
  kSync,      // all cores
  kClearOut,  // threads out of all sites of the batch
  kVerify,    // after unpatching: memory holds the original
  kResume,    // every thread
};

// What a trap at a site of the batch leads to.
enum class TrapEntries : uint8_t {
  kToStub,
  kToOutOfLine,  // but for a site that stays a trap: who met it while it was patched is recorded
  kStanding,     // no entry but for the traps that stay
};

// A step may be only for sites that threads could, or could not, be cleared out of.
enum class StepFor : uint8_t { kCleared, kDeferred };

// `site` is an index into the batch; kCheck, kWrite and kVerify have one. Members that a kind does
// not speak of are left as they are here.
struct Step {
  StepKind kind = StepKind::kSync;
  uint32_t site = 0;
  Part part = Part::kHead;      // kWrite
  Form form = Form::kOriginal;  // kWrite, kCheck, kVerify: what to; kClearOut: what of
  TrapEntries entries = TrapEntries::kStanding;
  StepFor only = StepFor::kCleared;  // kWrite
  friend bool operator==(const Step&, const Step&) = default;
};

struct Plan {
  Direction direction = Direction::kPatch;
  SwitchMode mode = SwitchMode::kTrap;
  std::vector<Step> steps;
};

// Puts the stores that each site's kind demands into rounds, a sync after each. One sync a round
// and one clearing a batch, however many sites it has. `sites` are sorted by begin(), do not
// overlap and passed CheckSite.
//
//   patching by trap sites of 2 bytes or more    what a thread can meet at one
//
//   publish site → stub                          original
//   traps, and what is aside;             sync   original | trap → stub
//   clear out                                    nobody is inside the original's tail
//   tails (heads back, where deferred);   sync   trap → stub
//   heads;                                sync   trap → stub | patched
//   publish what stands                          patched
//
//   unpatching
//   publish site → out of line                   patched
//   traps;                                sync   patched | trap → out of line
//   tails;                                sync   trap → out of line
//   heads;                                sync   trap → out of line | original
//   clear out the landings                       nobody is in what is aside
//   what is aside;                        sync   original
//   publish what stands
//
// Sleds and sites that stay traps are switched by their head alone, in these rounds; what is aside
// of a sled is stored and synced before its head leads there. Empty rounds are left out. Nobody can
// be inside a patched site but on its landing: its entry is one branch. (A thread that slept inside
// the original was moved out, or its site deferred.) Unpatching is right from every state that an
// execution can have left when it ended halfway: it stores over what may be there already, and no
// thread is where it was not before. With the threads stopped each entry is one Write, after what
// is aside and before it is restored: whatever Write the tracer dies behind, each site is whole.
[[nodiscard]] Plan MakePlan(std::span<const Site* const> sites, Direction direction,
                            SwitchMode mode);

// How a batch is undone of which only the first round of a plan may have been executed: by one
// store of one byte at each site.
[[nodiscard]] Plan MakeStepBack(std::span<const Site* const> sites, const Plan& plan);

// Why a site cannot be in a batch of this mode; nothing if it can.
[[nodiscard]] std::optional<Refusal> RefusedBy(const Site& site, SwitchMode mode);

// One line a step: "write 0x1000 head cc"…
[[nodiscard]] std::string ToString(const Plan& plan, std::span<const Site* const> sites);

}  // namespace stackreel::patch
