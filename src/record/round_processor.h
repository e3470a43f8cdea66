// Works off the rounds of records: puts them in order, follows processes, unwinds, writes.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "os/kernel_masks.h"
#include "os/pointer_authentication.h"
#include "perfdata/event_groups.h"
#include "perfdata/reader.h"
#include "record/live_unwind.h"
#include "record/machine.h"
#include "record/recording_file.h"
#include "record/round_queue.h"
#include "record/synthesize.h"
#include "record/time_order.h"
#include "record/vdso_images.h"
#include "session/session.h"

namespace stackreel::record {

// When to go on in a new file.
struct SwitchOutput {
  bool on_signal = false;
  uint64_t bytes = 0;
  std::chrono::milliseconds time{0};
  [[nodiscard]] bool enabled() const { return on_signal || bytes != 0 || time.count() != 0; }
};
// "signal", "100M", "30s"; kUsage otherwise. "" is no switching.
Result<SwitchOutput> ParseSwitchOutput(const std::string& text);

struct ProcessorOptions {
  std::string path;
  int compression_level = 1;
  bool unwind_live = true;
  uint64_t max_size = 0;
  SwitchOutput switch_output;
  std::vector<uint32_t> pids;  // whose state before the recording is wanted
  bool all_processes = false;
  bool data_mappings = false;
  bool namespaces = false, cgroups = false;
  os::MaskRoute masks = os::MaskRoute::kCpu;
  PtrAuthReader ptr_auth = os::ReadPtrAuthFile;  // with MaskRoute::kRecords
  std::vector<std::string> cmdline;
  std::vector<perfdata::EventGroup> groups;  // of the events
  std::optional<int32_t> clockid;
};

// What came of it.
struct ProcessorTotals {
  uint64_t samples = 0;          // taken from the rounds
  uint64_t samples_written = 0;  // and in the files, once they are ended
  uint64_t lost_in_records = 0;  // as LOST and LOST_SAMPLES records say
  uint64_t user_stacks = 0, complete_stacks = 0;
  uint64_t bytes = 0;
  std::vector<std::string> files;
};

class RoundProcessor {
 public:
  // Before the events are enabled and a command is started. `events` as the kernel writes them.
  // Creates the file, see Publish. `queue`, `executor` and `counters` must outlive it.
  static Result<std::unique_ptr<RoundProcessor>> Create(const ProcessorOptions& options,
                                                        const std::vector<perfdata::Event>& events,
                                                        RoundQueue& queue, Executor& executor,
                                                        Counters& counters);
  ~RoundProcessor();

  // Before a round is pushed, when nothing can keep the recording from starting any more: puts the
  // file in its place, and a recording that is there out of its way.
  Status Publish() { return file_->Publish(); }

  // On a thread of its own: synthesises what was there before, then takes rounds until the queue
  // is closed and empty. An error is the file's; what comes after it is not written.
  Status Run();
  // After Run: counts `kernel_lost` (what the kernel says it lost in all), ends the file.
  Status Finish(uint64_t kernel_lost);

  // From other threads, while Run does its work.
  // Waits until so many rounds in all have been worked off, or for so long.
  void AwaitRounds(uint64_t rounds, std::chrono::milliseconds patience);
  void RequestSwitch() { switch_requested_ = true; }
  [[nodiscard]] bool SwitchIsDue() const;
  [[nodiscard]] bool failed() const { return failed_; }
  // The size of dumps that stacks did not fit into lately; 0 if they do.
  [[nodiscard]] uint32_t too_small_dump() const { return too_small_dump_; }
  // What is sampled is traced too: the sooner it is unwound, the more is known of its stacks.
  [[nodiscard]] bool any_traced() const { return any_traced_; }
  [[nodiscard]] bool reached_max_size() const { return reached_max_size_; }

  [[nodiscard]] const KernelImage& kernel() const { return kernel_; }
  [[nodiscard]] const VdsoImages& vdsos() const { return vdsos_; }
  [[nodiscard]] const ProcessorTotals& totals() const { return totals_; }
  // The tasks known to run now, for events on a new CPU. May be called from other threads.
  [[nodiscard]] std::vector<uint32_t> RunningTasks() const;

 private:
  struct Task {
    uint32_t pid = 0;
    std::string comm;
  };
  RoundProcessor(const ProcessorOptions& options, const std::vector<perfdata::Event>& events,
                 RoundQueue& queue, Executor& executor, Counters& counters);
  Status CreateFile();
  void ReadKeysOfThreads();
  [[nodiscard]] std::vector<uint32_t> DescribedProcesses() const;
  Status Synthesize();
  Status TakeRound(Round round);
  Status ReadRing(std::vector<uint8_t>& ring);
  Status FlushUnwinder();
  Status EndRound();
  Status WriteStackEnds();
  Status PassOn(ByteView record);
  Status WriteInOrder(ByteView record);
  Status CheckSize();
  Status CheckSizeInRound();
  Result<ByteView> InOurForm(const perfdata::Record& ptr_auth);
  void Observe(const perfdata::Record& record);
  void AddVdsoBuildId(std::span<uint8_t> record);
  Status EmitSynthesized(const perfdata::Record& record);
  Status EmitSnapshot();
  [[nodiscard]] std::optional<perfdata::PacMask> MaskOfTask(const session::Process& process,
                                                            uint32_t tid) const;
  Status EmitKernel(const EmitRecord& emit) const;
  Status EmitGroups(const std::vector<uint32_t>& pids, const EmitRecord& emit) const;
  Status SwitchIfDue();
  Status CloseFile();
  void CountFile();
  [[nodiscard]] FeatureBytes Features() const;
  [[nodiscard]] std::map<std::string, uint64_t> StackEndsOfFile() const;
  [[nodiscard]] std::vector<uint8_t> BuildIdFeature() const;
  [[nodiscard]] std::optional<uint32_t> EventOf(uint64_t id) const { return table_.IndexOf(id); }

  ProcessorOptions options_;
  std::vector<perfdata::Event> events_;   // as the kernel writes them
  std::vector<perfdata::Event> written_;  // as they stand in the file
  RoundQueue& queue_;
  Counters& counters_;
  perfdata::EventTable table_;
  perfdata::Features session_features_;  // of the machine, for the session
  session::Session session_;
  VdsoImages vdsos_;
  std::unique_ptr<symbolize::ModuleFileProvider> files_;
  std::unique_ptr<LiveUnwinder> unwinder_;
  std::unique_ptr<RecordingFile> file_;  // null when closed
  KernelImage kernel_;
  BuildIdReader build_ids_;
  // By thread, until they are synthesised: as they were before any change of them was recorded.
  std::map<uint32_t, os::PointerAuthentication> keys_of_threads_;
  FeatureBytes machine_features_;
  std::deque<std::vector<uint8_t>> rewritten_;  // records that are not as the kernel wrote them

  TimeOrder order_;
  std::map<uint64_t, Round> held_;  // rounds whose records are not all written
  uint64_t round_ = 0;
  uint64_t first_time_ = 0, last_time_ = 0;
  // Of the current file; read by other threads.
  std::atomic<std::chrono::steady_clock::time_point> file_start_;
  std::atomic<uint64_t> file_bytes_ = 0;
  ProcessorTotals totals_;
  std::chrono::steady_clock::time_point next_stack_ends_;
  size_t records_since_check_ = 0;
  uint64_t stack_ends_written_ = 0;  // of how many stacks
  std::map<std::string, uint64_t> ends_of_earlier_files_;

  std::mutex rounds_mutex_;
  std::condition_variable rounds_changed_;
  uint64_t rounds_done_ = 0;
  mutable std::mutex tasks_mutex_;
  std::map<uint32_t, Task> tasks_;  // by tid
  std::atomic<bool> switch_requested_ = false, failed_ = false, reached_max_size_ = false,
                    any_traced_ = false;
  std::atomic<uint32_t> too_small_dump_ = 0;
};

}  // namespace stackreel::record
