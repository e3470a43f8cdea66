// Records: events → rings → perf.data, unwinding while it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "os/kernel_masks.h"
#include "perfdata/attr.h"

namespace stackreel::record {

class LookRequest;

enum class CallGraph : uint8_t { kNone, kFramePointer, kDwarf, kLbr };
enum class UnwindWhen : uint8_t { kLive, kLater };

struct RecordOptions {
  // Target: a command, tasks, or the machine. A command beside one of the others is not recorded by
  // itself: it says by its end how long.
  std::vector<std::string> command;
  std::vector<uint32_t> pids, tids;
  bool system_wide = false;
  std::vector<uint32_t> cpus;  // system-wide on these only; empty: all online

  std::vector<std::string> events;  // as given to -e; empty: cycles, or cpu-clock without a counter
  uint64_t frequency = 997;         // samples a second; 0: use period
  uint64_t period = 0;
  CallGraph call_graph = CallGraph::kDwarf;
  // Bytes of stack a sample, up to 65528, the largest the kernel takes. 0: unwound live, 24 KB, and
  // more as soon as stacks turn out not to fit; with --unwind=later the largest.
  uint32_t stack_size = 0;
  UnwindWhen unwind = UnwindWhen::kLive;
  std::string output = "perf.data";      // "-": pipe
  std::optional<int> compression_level;  // unset: 1; 0: none
  size_t mmap_pages = 0;                 // data pages a ring, a power of two; 0: chosen
  int64_t delay_ms = 0;                  // -D: -1 starts disabled
  std::optional<double> duration_s;
  std::string switch_output;  // "", "signal", a size ("100M") or time ("30s")
  uint64_t max_size = 0;
  std::optional<int32_t> clockid;
  bool all_user = false, all_kernel = false;
  bool inherit = true;
  // More records beside the samples, and of control groups a field in each sample.
  bool namespaces = false, cgroups = false, switches = false;
  // How masks of pointer authentication are to be recorded; unset: the best way there is. What this
  // kernel cannot becomes the next best, and a notice.
  std::optional<os::MaskRoute> masks;
  bool buildid_cache = true;         // keep the vDSO and kallsyms in ~/.debug
  std::vector<std::string> cmdline;  // for the CMDLINE feature
  // For a recording that goes on beside something else in this process, on a thread of its own: it
  // ends when this can be read from, and heeds no signals. -1: signals end it.
  int end_fd = -1;
  LookRequest* look = nullptr;  // must outlive the recording
  std::function<void()> begun;  // called when all that happens from now on is recorded

  [[nodiscard]] bool RecordsCommand() const {
    return !command.empty() && pids.empty() && tids.empty() && !system_wide;
  }
};

struct RecordSummary {
  uint64_t samples = 0;      // in the files
  uint64_t lost = 0;         // where a ring was full
  uint64_t not_written = 0;  // taken, but writing had failed
  uint64_t user_stacks = 0, complete_stacks = 0;
  uint64_t bytes = 0;
  double wall_s = 0, cpu_s = 0;  // the recorder's own
  std::string event;             // what was really recorded: "cycles and 2 other events"
  // By which way masks of pointer authentication came into it, and why by no better one; empty
  // where nothing is signed.
  std::string masks;
  std::string fallback;          // "no hardware counter here: recorded cpu-clock"; else empty
  std::optional<int> exit_code;  // of the command: its code, or 128 + signal
  Counters counters;
  std::string ended_by;  // "command ended", "SIGINT", "duration", or why writing failed
  // The command could not be executed, and why; then exit_code is 126 or 127 and there is no file.
  std::string exec_error;
  // Why the kernel did not measure the command: "it runs as root (set-user-ID)"; else empty.
  std::string not_measured;
  bool write_failed = false;  // the files hold what was written up to then
  std::vector<std::string> files;
};

// Runs until the target ends, a signal comes, the duration is over, or writing fails. kPermission
// and kUnsupported errors carry cause and cure; they mean that measuring could not start.
Result<RecordSummary> Record(const RecordOptions& options,
                             const std::function<void(const std::string&)>& notice);

// "cycles:u", "cpu-clock", "sched:sched_switch", "r1b0", "L1-dcache-loads", … → attr. kUsage or
// kNotFound with the nearest names.
Result<perfdata::Event> ParseEvent(const std::string& text);

}  // namespace stackreel::record
