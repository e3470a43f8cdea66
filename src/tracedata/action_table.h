// What is to be done at calls of chosen functions: filters and triggers, and what is recorded with
// a call. A tracer makes a table of it for the agent to look each function up in. Part of the
// memory that the two share (agent_memory.h), with its version.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace stackreel::tracedata {

// OpenCall::state. The lower bits hold for the calls that this one makes: each call gets its own
// from the innermost one around it, so there is nothing to undo when a call returns, is left, or
// goes on in another thread.
//
// How many levels of calls were recorded since where counting began, or kNoLevelLeft.
inline constexpr uint32_t kLevels = 2048;
inline constexpr uint32_t kLevelsGone = 0xfff;
inline constexpr uint32_t kNoLevelLeft = uint32_t{1} << 11;
// There are functions to begin at (kBegins), but no call of one is open.
inline constexpr uint32_t kOutside = uint32_t{1} << 12;
inline constexpr uint32_t kNotWithin = uint32_t{1} << 13;  // a call of a kEnds function is open
// Calls are held back, until one of a kLeadsHere function shows that they led there.
inline constexpr uint32_t kHolding = uint32_t{1} << 14;
// Index into ActionTable::durations; 0: AgentControl::min_duration.
inline constexpr uint32_t kDurationShift = 16;
inline constexpr uint32_t kDurationMask = uint32_t{0xff} << kDurationShift;
inline constexpr uint32_t kInherited = (uint32_t{1} << 24) - 1;
// The others are of the call itself. It is open only for what it means for others:
inline constexpr uint32_t kSilent = uint32_t{1} << 24;
inline constexpr uint32_t kHeld = uint32_t{1} << 25;  // held back still
// Recorded however short it is, as it called what was recorded.
inline constexpr uint32_t kKept = uint32_t{1} << 26;

// What is done when a function is called. In this order, and nothing but kEnds where the call is
// kNotWithin, nothing but kBegins where it is kOutside.
enum ActionFlag : uint32_t {
  kBegins = 1 << 0,   // -F: recording begins here, with its levels counted anew
  kEnds = 1 << 1,     // -N: neither it nor what it calls is recorded
  kTraceOn = 1 << 2,  // of the process
  kTraceOff = 1 << 3,
  kSetsLevels = 1 << 4,    // from here on (it included) so many levels are recorded
  kSetsDuration = 1 << 5,  // it and what it calls have another least duration
  kAlways = 1 << 6,        // it is recorded however short it is
  kLeadsHere = 1 << 7,     // -C: it and the calls around it are recorded
  kUnrecorded = 1 << 8,    // it is patched for what it does to others
};

struct FunctionActions {
  uint32_t flags = 0;    // ActionFlag
  uint16_t levels = 0;   // kSetsLevels: up to kLevels
  uint8_t duration = 0;  // kSetsDuration: index into ActionTable::durations, not 0
  uint8_t reserved = 0;
  // Where more about its actions stands, from the table's begin, and how much; in bytes.
  uint32_t list = 0;
  uint32_t list_size = 0;
};
static_assert(sizeof(FunctionActions) == 16);

// Least durations that functions can set, in ticks. A tracer that changes tables keeps the numbers
// of those it has given: open calls have them.
inline constexpr uint32_t kDurations = 256;

// Followed by a uint32_t for each function below `functions`: where its FunctionActions is, from
// the table's begin, in bytes; 0 if it has none. Immutable once its address is stored, and kept as
// long as the agent: a thread may be reading it still.
struct ActionTable {
  uint32_t functions = 0;
  uint32_t root_state = 0;  // of a call that no open call is around
  uint64_t durations[kDurations] = {};
};
static_assert(sizeof(ActionTable) == 2056);

// What a tracer makes a table of.
struct CallActions {
  FunctionActions actions;    // whose list and list_size follow from
  std::vector<uint8_t> list;  // this
  [[nodiscard]] bool empty() const { return actions.flags == 0 && list.empty(); }
};
struct ActionSet {
  std::map<uint32_t, CallActions> functions;  // by number, below 2^28
  uint32_t root_state = 0;
  std::vector<uint64_t> durations;  // of which number 1 is the first; up to kDurations - 1
  [[nodiscard]] bool empty() const { return functions.empty() && root_state == 0; }
};
// An ActionTable and what follows it, to be put at an address that is a multiple of 8. Each list
// begins at a multiple of 8, too.
[[nodiscard]] std::vector<uint8_t> EncodeActionTable(const ActionSet& set);

}  // namespace stackreel::tracedata
