// What a trace says beside its events: modules, functions, threads, the clock, and what was patched
// when. The side file of a trace holds these as they came.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/address.h"
#include "base/build_id.h"
#include "tracedata/filter_option.h"

namespace stackreel::tracedata {

// CLOCK_MONOTONIC, in nanoseconds, of a count of ticks (rdtsc):
//   nanoseconds = origin_nanoseconds + (ticks - origin_ticks) × 10^9 / ticks_per_second
struct TraceClock {
  uint64_t origin_ticks = 0;
  uint64_t origin_nanoseconds = 0;
  uint64_t ticks_per_second = 1'000'000'000;
  uint64_t realtime_offset = 0;  // CLOCK_REALTIME - CLOCK_MONOTONIC at the origin
  friend bool operator==(const TraceClock&, const TraceClock&) = default;
};

struct TraceHost {
  std::string command_line = {};  // of the program
  std::string host_name = {};
  std::string kernel = {};
  std::string cpu = {};
  uint32_t cpus = 0;
  uint64_t memory_bytes = 0;
  friend bool operator==(const TraceHost&, const TraceHost&) = default;
};

struct TraceModule {
  uint32_t id = 0;
  std::string path = {};
  BuildId build_id = {};
  friend bool operator==(const TraceModule&, const TraceModule&) = default;
};

// A module stands in a process's memory from `ticks` on.
struct ModuleLoad {
  uint32_t pid = 0;
  uint32_t module = 0;
  uint64_t ticks = 0;
  Avma start = {}, end = {};  // of all its segments
  uint64_t bias = 0;          // avma - svma
  friend bool operator==(const ModuleLoad&, const ModuleLoad&) = default;
};

// The names of a type's values.
struct TraceEnumeration {
  struct Name {
    int64_t value = 0;
    std::string text = {};
    friend bool operator==(const Name&, const Name&) = default;
  };
  uint32_t id = 0;  // from 1
  std::string name = {};
  std::vector<Name> names = {};
  friend bool operator==(const TraceEnumeration&, const TraceEnumeration&) = default;
};

// How one argument or return value stands in the values of an event: one behind the other, without
// padding, little-endian.
struct ValueFormat {
  enum class Kind : uint8_t {
    kSigned,
    kUnsigned,
    kHex,
    kPointer,
    kCharacter,
    kString,  // u16 (see below), then what it says
    kFloat,
    kEnumeration,  // kSigned, with names
    kBool,
    kFunction,  // kPointer, to a function
    kStruct,    // that there is one; none of its bytes
    kNumber,    // of a register, whose type is not known: see views/value_text.h
  };
  // The word before a text: how many bytes of it follow, and whether it went on behind them.
  static constexpr uint16_t kTextGoesOn = 0x8000;
  static constexpr uint16_t kMaxTextBytes = 0x7ffd;
  static constexpr uint16_t kNullText = 0xfffe;        // a null pointer; nothing follows
  static constexpr uint16_t kUnreadableText = 0xffff;  // there is none to read at the pointer (u64)
  // The exponent, with a fraction of 0, of a long double that was nowhere to be read: no x87 has
  // computed such a number since the 80287.
  static constexpr uint16_t kNoFloatExponent = 0x7fff;

  Kind kind = Kind::kSigned;
  uint8_t bytes = 8;         // 1, 2, 4, 8, 16; of no meaning for kString and kStruct
  std::string name = {};     // of the parameter; may be empty
  uint32_t enumeration = 0;  // kEnumeration: TraceEnumeration::id; 0: its names are not known
  friend bool operator==(const ValueFormat&, const ValueFormat&) = default;
};
// Whether calls have such values though nothing is recorded of them: structs and nothing else.
[[nodiscard]] inline bool TakeNoBytes(const std::vector<ValueFormat>& formats) {
  return !formats.empty() && std::ranges::all_of(formats, [](const ValueFormat& format) {
    return format.kind == ValueFormat::Kind::kStruct;
  });
}

struct TraceFunction {
  uint32_t id = 0;  // as events have it
  uint32_t module = 0;
  Svma svma = {};
  uint64_t size = 0;
  std::string name = {};  // as the symbol table has it, mangled
  std::vector<ValueFormat> arguments = {};
  std::vector<ValueFormat> returns = {};  // one, or none
  friend bool operator==(const TraceFunction&, const TraceFunction&) = default;
};

struct TraceThread {
  uint32_t index = 0;  // as chunks have it: a thread id that is used again is another index
  uint32_t pid = 0, tid = 0;
  std::string comm = {};
  friend bool operator==(const TraceThread&, const TraceThread&) = default;
};

struct ProcessFork {
  uint64_t ticks = 0;
  uint32_t pid = 0, parent_pid = 0;
  friend bool operator==(const ProcessFork&, const ProcessFork&) = default;
};
struct ProcessExec {
  uint64_t ticks = 0;
  uint32_t pid = 0;
  std::string path = {};
  friend bool operator==(const ProcessExec&, const ProcessExec&) = default;
};
struct ProcessExit {
  // Only a process's parent is told it.
  static constexpr int32_t kUnknownStatus = -1;
  uint64_t ticks = 0;
  uint32_t pid = 0;
  int32_t status = kUnknownStatus;  // as wait(2) gives it
  friend bool operator==(const ProcessExit&, const ProcessExit&) = default;
};

struct PatchEvent {
  enum class Action : uint8_t { kPatched, kUnpatched, kDeferred, kRefused, kDetached };
  uint64_t ticks = 0;
  uint32_t pid = 0;
  Action action = Action::kPatched;
  uint32_t function = 0;
  std::string reason = {};  // kDeferred, kRefused
  friend bool operator==(const PatchEvent&, const PatchEvent&) = default;
};

// The filters and triggers that are in force from then on: all there are.
struct FilterChange {
  uint64_t ticks = 0;
  uint32_t pid = 0;
  std::vector<FilterOption> filters = {};
  friend bool operator==(const FilterChange&, const FilterChange&) = default;
};

// Calls that were not recorded, beyond what events tell of: by LossReasonText, as at the end of a
// program there may be no chunk for a kLost, or otherwise.
struct TraceLoss {
  uint32_t pid = 0;
  std::string reason = {};
  uint64_t calls = 0;  // 0: it is not known how many
  friend bool operator==(const TraceLoss&, const TraceLoss&) = default;
};

using TraceFact = std::variant<TraceClock, TraceHost, TraceModule, ModuleLoad, TraceFunction,
                               TraceThread, ProcessFork, ProcessExec, ProcessExit, PatchEvent,
                               TraceLoss, TraceEnumeration, FilterChange>;

}  // namespace stackreel::tracedata
