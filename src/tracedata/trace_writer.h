// Writes a trace: a directory of two files, that grow while the traced program runs.
//   calls   chunks of events, compressed
//   facts   what trace_facts.h lists
// Both can be read up to where they end, whenever that is.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "tracedata/trace_facts.h"

namespace stackreel::tracedata {

inline constexpr char kCallsFile[] = "calls";
inline constexpr char kFactsFile[] = "facts";
// A sampled profile of the same run, a recording as `perf record` makes; not always there.
inline constexpr char kSamplesFile[] = "perf.data";

// A chunk as it is kept: the words that one thread wrote, as call_event.h has them.
struct TraceChunk {
  uint32_t thread = 0;    // TraceThread::index
  uint32_t sequence = 0;  // of this thread, from 0; a gap means chunks that were dropped
  uint64_t base = 0;      // ticks
  ByteView words;
};

class TraceWriter {
 public:
  // The sinks must outlive it. `level` is zstd's; 0 does not compress.
  static Result<TraceWriter> Begin(ByteSink& calls, ByteSink& facts, int level);
  TraceWriter(TraceWriter&&) noexcept;
  TraceWriter& operator=(TraceWriter&&) noexcept;
  ~TraceWriter();

  // What an event or another fact speaks of must have been added before. Facts that cannot be
  // written are kept, and written before what comes next; a chunk is not.
  Status Add(const TraceFact& fact);
  Status Add(const TraceChunk& chunk);
  // Writes what is still held back.
  Status Flush();

 private:
  struct State;
  explicit TraceWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace stackreel::tracedata
