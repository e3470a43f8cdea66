// Empties the chunks that agents fill into a trace.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "tracedata/agent_memory.h"
#include "tracer/installed_agent.h"
#include "tracer/trace_output.h"

namespace stackreel::tracer {

struct CollectedCounts {
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  uint64_t calls = 0;    // ends of calls, of whatever kind
  uint64_t entries = 0;  // of calls that were open at the end of a chunk
  std::array<uint64_t, tracedata::kLossReasons> lost = {};
  uint64_t threads = 0;
};

class ChunkCollector {
 public:
  // `pid` is the traced process; processes that it forks are told of as they appear.
  ChunkCollector(Pool& pool, TraceOutput& output, uint32_t pid);
  ~ChunkCollector();
  ChunkCollector(const ChunkCollector&) = delete;
  ChunkCollector& operator=(const ChunkCollector&) = delete;

  // Empties full chunks on a thread of its own until Stop().
  void Start();
  // Ends that, and takes what is full still.
  Status Stop();
  // When nobody writes any more, of process `pid` or (0) of any: takes what threads have left in
  // chunks they own. `open` are the open calls of each thread that have no kEntry yet, as words to
  // add to the chunk it owns.
  using OpenCalls = std::map<std::pair<uint32_t, uint32_t>, std::vector<uint32_t>>;  // pid, tid
  Status TakeOwned(uint32_t pid, const OpenCalls& open);

  // Can be read from (8 bytes, which make it silent again) when the program has loaded or unloaded
  // libraries.
  [[nodiscard]] int libraries_fd() const { return libraries_fd_.get(); }
  [[nodiscard]] CollectedCounts counts() const;
  // What went wrong on the thread: the trace is then complete up to there.
  [[nodiscard]] Status status() const;

 private:
  struct ThreadState {
    uint32_t index = 0;
    bool has_first = false;  // its chunk 0 was taken
  };

  void Work();
  Status TakeFull(bool* any);
  Status Take(uint32_t chunk, const std::vector<uint32_t>& more);
  Status Write(const tracedata::ChunkHeader& header, ByteView words);
  Result<uint32_t> ThreadIndex(const tracedata::ChunkHeader& header);
  Status NoteProcess(const tracedata::ChunkHeader& header);
  void Count(ByteView words);

  Pool& pool_;
  TraceOutput& output_;
  uint32_t pid_;
  os::Fd libraries_fd_;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  CollectedCounts counts_;
  Status status_;
  std::map<std::pair<uint32_t, uint32_t>, ThreadState> threads_;
  std::map<uint32_t, uint32_t> processes_;  // → fork generation
  uint32_t next_index_ = 0;
  std::jthread thread_;
};

}  // namespace stackreel::tracer
