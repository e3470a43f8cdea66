// A trace as it is read, whatever its format: tables of what it speaks of, and the events of each
// thread in order of time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/counters.h"
#include "base/error.h"
#include "tracedata/call_event.h"
#include "tracedata/trace_facts.h"

namespace stackreel::tracedata {

// One event. `head` is as in call_event.h, of kEntry, kExit, kLeft or kLost; but its function is a
// row of TraceTables::functions, kLost's still a LossReason.
struct OrderedEvent {
  uint64_t ticks = 0;
  uint32_t head = 0;
  // kLost: how many calls, 0 if that is not known. Else, with values: where in EventBatch::bytes
  // they stand, a word of their size first.
  uint32_t detail = 0;

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(KindBitsOf(head)); }
  [[nodiscard]] uint32_t function() const { return FunctionOf(head); }
};
static_assert(sizeof(OrderedEvent) == 16);

// Events that follow each other in one thread.
struct EventBatch {
  std::span<const OrderedEvent> events;
  ByteView bytes;

  // The values of one of its events, without padding; empty if it has none.
  [[nodiscard]] ByteView ValuesOf(const OrderedEvent& event) const {
    if (!HasValues(event.head) || event.kind() == EventKind::kLost) return {};
    return bytes.subspan(event.detail + sizeof(uint32_t),
                         LoadUnaligned<uint32_t>(bytes.data() + event.detail, Endian::kLittle));
  }
};

// The events of a thread, in order of time. Calls may lack their entry or their exit: where chunks
// were lost, and where recording began or ended in their midst.
class ThreadCalls {
 public:
  virtual ~ThreadCalls() = default;
  // No event to come is before this time; UINT64_MAX: there is none.
  [[nodiscard]] virtual uint64_t NextTicks() const = 0;
  // The next events, valid until the next call; none: the end.
  virtual Result<EventBatch> Next() = 0;
};

struct TraceTables {
  TraceClock clock;
  TraceHost host;
  std::vector<TraceModule> modules;
  std::vector<ModuleLoad> loads;
  std::vector<TraceFunction> functions;  // by the row that events have
  std::vector<TraceThread> threads;
  std::vector<ProcessFork> forks;
  std::vector<ProcessExec> execs;
  std::vector<ProcessExit> exits;
  std::vector<PatchEvent> patches;
  std::vector<FilterChange> filters;
  std::vector<TraceLoss> losses;
  std::vector<TraceEnumeration> enumerations;
};

class TraceSource {
 public:
  virtual ~TraceSource() = default;
  // Functions may be added, at the end, while events are read.
  [[nodiscard]] virtual const TraceTables& tables() const = 0;
  // The module of a function: a row of tables().modules, or nothing.
  [[nodiscard]] virtual const TraceModule* ModuleOf(const TraceFunction& function) const = 0;
  // The events of the thread tables().threads[row]. Several threads may be read at a time, and each
  // as often as wanted. The source must outlive it.
  virtual std::unique_ptr<ThreadCalls> CallsOf(size_t thread_row) = 0;
  // Grow while events are read.
  [[nodiscard]] virtual const Counters& counters() const = 0;
  // Not empty: only part of the trace could be read; says where and why.
  [[nodiscard]] virtual const std::string& damage() const = 0;
  // What it is: "stackreel trace, version 1".
  [[nodiscard]] virtual std::string FormatName() const = 0;
  [[nodiscard]] virtual uint64_t bytes() const = 0;
};

}  // namespace stackreel::tracedata
