// The text files of uftrace's recordings: info, task.txt, *.map, *.sym, *.dbg. Lines that make no
// sense are passed over, and counted as "uftrace.bad_line".
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.h"
#include "base/bytes.h"
#include "base/counters.h"
#include "base/error.h"
#include "tracedata/trace_facts.h"

namespace stackreel::tracedata {

inline constexpr size_t kUftraceHeadSize = 40;
inline constexpr std::string_view kUftraceMagic{"Ftrace!\0", 8};

enum class UftraceFeature : uint8_t {
  kPltHook,
  kTaskSession,
  kKernel,
  kArguments,
  kReturns,
  kRelativeSymbols,
  kMaxStack,
  kEvents,
  kPerfEvents,
  kAutoArguments,
  kDebugInfo,
};

// An argument or return value in the payload of a record.
struct UftraceSpec {
  ValueFormat format;
  uint32_t bytes = 0;       // in the payload, of which the first are the value's; not of kString
  std::string enumeration;  // kEnumeration: its name
};
struct UftraceSpecs {
  std::vector<UftraceSpec> arguments, returns;
};
// "@arg1/s,fparg1/64,retval/i32", the '@' and which function aside.
UftraceSpecs ParseUftraceSpecs(std::string_view text);

struct UftraceInfo {
  uint32_t version = 0;
  uint64_t features = 0;
  std::map<std::string, std::string, std::less<>> lines;  // "exename" → …, "cpuinfo:desc" → …
  // "name@specs" of -A, -R and of the built-in ones.
  std::map<std::string, UftraceSpecs, std::less<>> specs, built_in_specs;
  std::vector<TraceEnumeration> enumerations;  // without ids
  [[nodiscard]] bool Has(UftraceFeature feature) const {
    return (features >> static_cast<uint8_t>(feature) & 1) != 0;
  }
  [[nodiscard]] std::string_view Line(std::string_view name) const {
    const auto found = lines.find(name);
    return found == lines.end() ? std::string_view() : found->second;
  }
};
// kDamaged: not an info file; kUnsupported: a version, byte order or word size not known here.
Result<UftraceInfo> ParseUftraceInfo(ByteView bytes);

struct UftraceTaskLine {
  enum class Kind : uint8_t { kSession, kTask, kFork, kLibrary };
  Kind kind = Kind::kTask;
  uint64_t nanoseconds = 0;
  uint32_t pid = 0, tid = 0, parent_pid = 0;
  uint64_t base = 0;  // kLibrary
  std::string sid, name;
};
std::vector<UftraceTaskLine> ParseUftraceTasks(std::string_view text, Counters& counters);

struct UftraceMapping {
  uint64_t start = 0, end = 0;
  std::string path;
  BuildId build_id;
};
// One a file: all its mappings together.
std::vector<UftraceMapping> ParseUftraceMap(std::string_view text, Counters& counters);

struct UftraceSymbol {
  uint64_t address = 0;
  uint64_t size = 0;    // 0: up to the next
  bool is_end = false;  // no symbol: the end of the one before
  std::string name;
};
// Sorted by address.
std::vector<UftraceSymbol> ParseUftraceSymbols(std::string_view text, Counters& counters);

// "enum NAME {A,B=3}", several of them behind each other; ids are 0.
std::vector<TraceEnumeration> ParseUftraceEnumerations(std::string_view text);

struct UftraceDebug {
  std::map<uint64_t, UftraceSpecs> specs;      // by the addresses of functions
  std::vector<TraceEnumeration> enumerations;  // without ids
};
UftraceDebug ParseUftraceDebug(std::string_view text);

}  // namespace stackreel::tracedata
