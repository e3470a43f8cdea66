// Empties the chunks that agents fill into a trace.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "os/fair_mutex.h"
#include "tracedata/agent_memory.h"
#include "tracer/installed_agent.h"
#include "tracer/trace_output.h"
#include "tracer/untold_calls.h"

namespace stackreel::tracer {

struct CollectedCounts {
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  uint64_t calls = 0;              // ends of calls, of whatever kind
  uint64_t entries = 0;            // of calls that were open at the end of a chunk
  tracedata::LostCalls lost = {};  // as events tell of them
  uint64_t unwritten = 0;  // calls that were recorded, but could not be written to the trace
  uint64_t threads = 0;

  CollectedCounts& operator+=(const CollectedCounts& other);
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
  // A process that uses the pool, by its id as it sees itself, has become another program: takes
  // what it had recorded, and tells that it was forked if nothing has yet. While it collects.
  void TakeExecuted(uint32_t pid);
  // What of open calls no event tells of yet, as `read` finds it while the program runs; in place
  // of what was noted before. If the program ends they get entries, but for those that events tell
  // of by then.
  Status NoteUntold(const std::function<Result<UntoldCalls>()>& read);
  // When nobody writes any more: takes what threads have left in chunks they own. `untold` is in
  // place of what was noted of its threads; with `all`, of every thread.
  Status TakeOwned(UntoldCalls untold, bool all);

  // Can be read from (8 bytes, which make it silent again) when the program waits for an answer.
  [[nodiscard]] int asked_fd() const { return asked_fd_.get(); }
  // With what stands in chunks that threads own still, which may be all of a program that calls
  // rarely.
  [[nodiscard]] CollectedCounts counts() const;
  // What went wrong on the thread: the trace is then complete up to there.
  [[nodiscard]] Status status() const;

 private:
  using ThreadKey = std::pair<uint32_t, uint32_t>;  // pid, tid
  struct ThreadState {
    uint32_t index = 0;
    bool has_first = false;  // its chunk 0 was taken
    uint32_t next_sequence = 0;
  };

  void Work();
  Status TakeFull(bool* any);
  [[nodiscard]] bool ChildrenHoldMany() const;
  void ExtendWhereOwned() const;
  Status TakeOfEnded();
  Status TakeOfExecuted();
  Status Take(uint32_t chunk, bool is_last);
  void AppendEntries(ThreadKey key, uint64_t base, std::vector<uint8_t>& words);
  Status WriteUntoldRest();
  void ForgetTold(ThreadKey key, uint64_t& base, ByteView words);
  [[nodiscard]] std::string CommOf(ThreadKey key) const;
  Status Write(const tracedata::ChunkHeader& header, ByteView words);
  Status AddToOutput(const tracedata::ChunkHeader& header, ByteView words);
  Result<uint32_t> ThreadIndex(const tracedata::ChunkHeader& header);
  Status NoteProcess(uint32_t pid, uint32_t fork_generation, uint64_t ticks);
  void Count(ByteView words, bool written);
  [[nodiscard]] CollectedCounts CountOwned() const;

  Pool& pool_;
  TraceOutput& output_;
  uint32_t pid_;
  os::Fd asked_fd_;
  std::atomic<bool> ends_ = false;
  mutable std::mutex mutex_;
  CollectedCounts counts_;
  Status status_;
  std::set<uint32_t> executed_;  // processes that are to be taken of
  std::condition_variable taken_;
  std::map<ThreadKey, ThreadState> threads_;
  // Held while a chunk is taken, and while open calls are read: while chunks are filled as fast as
  // they are taken, the others come between two of them.
  mutable os::FairMutex untold_mutex_;
  UntoldCalls untold_;
  std::map<ThreadKey, std::string> comms_;  // of threads that may have ended when they are told of
  std::map<uint32_t, uint32_t> processes_;  // → fork generation
  std::chrono::steady_clock::time_point next_look_;  // at which processes there are
  std::jthread thread_;
};

}  // namespace stackreel::tracer
