// Traces in memory: for tests, fuzzers and rates.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/memory_io.h"
#include "tracedata/chunk_builder.h"
#include "tracedata/trace_reader.h"
#include "tracedata/trace_writer.h"

namespace stackreel::tracedata {

struct FakeTrace {
  MemorySink calls, facts;

  [[nodiscard]] Result<std::unique_ptr<TraceSource>> Open() const {
    return OpenTrace(
        std::make_unique<MemorySource>(ByteView(calls.bytes()), true, SIZE_MAX, "calls"),
        std::make_unique<MemorySource>(ByteView(facts.bytes()), true, SIZE_MAX, "facts"));
  }
};

// One event, as it was made.
struct FakeEvent {
  EventKind kind = EventKind::kEntry;
  uint64_t ticks = 0;
  uint32_t function = 0;
  std::string values = {};
  friend bool operator==(const FakeEvent&, const FakeEvent&) = default;
};

// A random run of one thread: calls that nest, some with values, some that begin and end at once.
inline std::vector<FakeEvent> RandomRun(uint32_t seed, size_t count, uint64_t start = 1000,
                                        uint32_t functions = 10) {
  std::mt19937 random(seed);
  std::vector<FakeEvent> events;
  std::vector<std::pair<uint32_t, bool>> open;
  uint64_t now = start;
  while (events.size() < count) {
    if (random() % 4 != 0) now += random() % 50;
    if (random() % 500 == 0) now += uint64_t{5} << 32;
    const bool enter = open.empty() || (open.size() < 200 && random() % 2 == 0);
    const bool values = random() % 8 == 0;
    FakeEvent event{.ticks = now};
    if (values)
      event.values = std::string(1 + random() % 20, static_cast<char>('a' + random() % 9));
    if (enter) {
      event.function = random() % functions;
      open.emplace_back(event.function, values);
    } else {
      event.kind = random() % 10 == 0 ? EventKind::kLeft : EventKind::kExit;
      event.function = open.back().first;
      if (event.kind == EventKind::kLeft) event.values.clear();
      open.pop_back();
    }
    events.push_back(std::move(event));
  }
  return events;
}

inline void WriteRun(const std::vector<FakeEvent>& events, ChunkBuilder& builder) {
  for (const FakeEvent& event : events) {
    if (event.kind == EventKind::kEntry) {
      (void)builder.Enter(event.ticks, event.function, AsBytes(event.values));
    } else {
      (void)builder.Exit(event.ticks, event.function, AsBytes(event.values),
                         event.kind == EventKind::kLeft);
    }
  }
}

// What a thread's calls are read as.
inline std::vector<FakeEvent> ReadRun(TraceSource& source, size_t thread) {
  std::vector<FakeEvent> events;
  const std::unique_ptr<ThreadCalls> calls = source.CallsOf(thread);
  while (true) {
    const Result<EventBatch> batch = calls->Next();
    if (!batch || batch->events.empty()) return events;
    for (const OrderedEvent& event : batch->events) {
      events.push_back({.kind = event.kind(),
                        .ticks = event.ticks,
                        .function = event.kind() == EventKind::kLost
                                        ? event.function()
                                        : source.tables().functions[event.function()].id,
                        .values = std::string(AsText(batch->ValuesOf(event)))});
    }
  }
}

}  // namespace stackreel::tracedata
