// Samples with registers and a dumped stack → the same samples with a callchain.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "analyze/analysis.h"
#include "analyze/module_images.h"
#include "analyze/stack_to_chain.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "perfdata/attr.h"
#include "perfdata/sample.h"
#include "record/synthesize.h"
#include "record/traced_processes.h"
#include "session/session.h"
#include "symbolize/symbolizer.h"
#include "unwind/unwind.h"

namespace stackreel::record {

// Whether the dumps are large enough for what is running.
class DumpWatch {
 public:
  // `cut_at`: the size of a dump that was filled, and the stack reached beyond it; else 0.
  void Add(uint32_t cut_at) {
    constexpr uint64_t kRecent = 4096;
    if (++stacks_ > kRecent) {
      stacks_ /= 2;
      cut_ /= 2;
    }
    if (cut_at > size_) {  // dumps have become larger
      size_ = cut_at;
      stacks_ = 1;
      cut_ = 0;
    }
    if (cut_at != 0 && cut_at == size_) ++cut_;
  }
  // The size, if more than a few in a thousand of the last stacks were cut there; else 0.
  [[nodiscard]] uint32_t TooSmall() const {
    constexpr uint64_t kFew = 3, kPerThousand = 3;
    return cut_ > kFew && cut_ * 1000 > stacks_ * kPerThousand ? size_ : 0;
  }

 private:
  uint64_t stacks_ = 0, cut_ = 0;
  uint32_t size_ = 0;
};

// Of a SAMPLE no more than its masks of pointer authentication, if its event has them:
// enabled_keys, insn_mask and data_mask are the last words of the record.
std::optional<perfdata::Sample> MasksIn(ByteView record, const perfdata::Attr& attr);

class LiveUnwinder {
 public:
  // What it does with a record when its turn has come.
  using Write = std::function<Status(ByteView record)>;

  // All must outlive it. `recorded` are the events as the kernel writes them.
  // `clockid`: of the samples' times, if one was chosen.
  LiveUnwinder(session::Session& session, symbolize::ModuleFileProvider& files, Executor& executor,
               const std::vector<perfdata::Event>& recorded, std::optional<int32_t> clockid,
               Counters& counters);

  // A SAMPLE, with the maps of its process as they are now. The bytes must stay until Flush.
  void AddSample(ByteView record, uint32_t event);
  // Any other record: written at its place among the samples.
  void AddOther(ByteView record);
  // Unwinds what was added, on all threads, and writes all of it in the order it came.
  Status Flush(const Write& write);

  // Before Flush: gives records that name the code of agents that have been found. The kernel has
  // told of it as of any that has no file.
  Status NameAgents(const EmitRecord& emit);
  // A further file has begun: they are to be named again.
  void ForgetAgents() { traced_.ForgetAgents(); }

  // Whether functions of a process that was sampled are traced.
  [[nodiscard]] bool any_traced() const { return traced_.any(); }

  [[nodiscard]] uint64_t user_stacks() const { return user_stacks_; }
  [[nodiscard]] uint64_t complete_stacks() const;
  [[nodiscard]] uint32_t too_small_dump() const { return watch_.TooSmall(); }
  // Name of each end there was → samples, for the STACK_ENDS feature. "no stack dumped" is told
  // apart from "dump exhausted": the task was in exec or exit, or its stack not in memory.
  [[nodiscard]] std::map<std::string, uint64_t> StackEnds() const;
  // By unwind::StackEnd, of those that something was dumped of.
  [[nodiscard]] const std::vector<uint64_t>& ends() const { return ends_; }
  // Adds what the unwinders counted.
  void CollectCounters(Counters& counters) const;

 private:
  struct Job {
    ByteView record;
    uint32_t event = 0;
    std::shared_ptr<const unwind::UnwindMaps> maps;
    uint64_t code_mask = 0;
    const unwind::Detours* detours = nullptr;  // its process is traced
    bool kernel_clock = false;                 // by this clock, see TracedProcesses
    std::optional<unwind::StackEnd> end;       // of the user stack, once it was unwound
    uint32_t cut_at = 0;    // the dump was filled, and the stack reaches beyond it
    bool no_stack = false;  // nothing was dumped, and more than the sampled pc was wanted
    bool bad = false;
    size_t chunk = 0, offset = 0, size = 0;  // the new record, in chunk_bytes_
  };
  struct Item {
    ByteView record;  // unless `job` says which
    size_t job = SIZE_MAX;
  };
  // One thread's caches.
  struct Worker {
    unwind::Unwinder unwinder;
    std::vector<unwind::Frame> frames;
    std::vector<uint64_t> chain;
    perfdata::Sample sample;
  };
  void UnwindChunk(size_t chunk, Worker& worker);
  void UnwindAgain(size_t chunks);
  void UnwindOne(Job& job, Worker& worker, std::vector<uint8_t>& out);

  session::Session& session_;
  Executor& executor_;
  Counters& counters_;
  std::vector<perfdata::Attr> recorded_, written_;
  symbolize::Symbolizer symbolizer_;
  analyze::ModuleImages images_;
  analyze::UnwindMapsCache maps_;
  TracedProcesses traced_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Job> jobs_;
  std::vector<Item> items_;
  std::vector<std::vector<uint8_t>> chunk_bytes_;
  uint64_t user_stacks_ = 0;
  uint64_t no_stack_ = 0;  // beside those in ends_
  DumpWatch watch_;
  std::vector<uint64_t> ends_;
};

}  // namespace stackreel::record
