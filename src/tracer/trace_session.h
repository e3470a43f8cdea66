// One trace of one program, from its start (or the attaching) to the end.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "os/child_process.h"
#include "os/entry_stop.h"
#include "tracer/chunk_collector.h"
#include "tracer/control_socket.h"
#include "tracer/function_choice.h"
#include "tracer/function_values.h"
#include "tracer/installed_agent.h"
#include "tracer/leave_target.h"
#include "tracer/patched_functions.h"
#include "tracer/target.h"
#include "tracer/trace_clock.h"
#include "tracer/trace_output.h"

namespace stackreel::tracer {

// What goes on beside a trace, and is of the same process.
class TraceCompanion {
 public:
  virtual ~TraceCompanion() = default;
  // Before the first function is patched; a command has not run yet. `directory` is the trace's. An
  // error ends the trace.
  virtual Status Begin(uint32_t pid, const std::string& directory) = 0;
  // The program waits for this: it may be about to end.
  virtual void LookNow() = 0;
  // Once, before a program that goes on is left, or when it has ended; `discard`: what it has
  // written is not wanted, as the trace could not begin.
  virtual void End(bool discard) = 0;
};

struct TraceOptions {
  std::vector<std::string> command;  // to be started, or
  uint32_t pid = 0;                  // what to attach to
  std::vector<PatternChoice> patterns;
  std::string output = "stackreel.trace";
  ValueOptions values;
  std::vector<tracedata::FilterOption> filters;  // and triggers
  uint32_t chunks = 512;
  tracedata::OnFull on_full = tracedata::OnFull::kBlock;
  // Whether a thread that loads libraries waits until what is meant of them is patched, so that not
  // even their first calls are missed.
  bool await_libraries = true;
  bool force = false;   // trace it though it has a seccomp filter that cannot be looked at
  bool follow = false;  // across execve(2): the new program is traced by the same patterns
  int level = 1;        // of zstd
  bool traps = false;   // functions that nothing else can be put at get a trap
  os::SignalState signals = os::SignalState::Current();  // of a command
  TraceCompanion* companion = nullptr;                   // must outlive the session
};

enum class TraceEnd : uint8_t { kProgramEnded, kExecuted, kDuration, kSignal, kRequest };

struct TraceSummary {
  uint32_t pid = 0;
  std::string directory;
  PatchCounts patched;                 // when it began
  PatchCounts followed;                // of libraries loaded since
  PatchCounts acting;                  // functions of filters and triggers, when it began
  bool follows = false;                // TraceOptions::follow
  size_t executed = 0;                 // programs that were followed into
  size_t executed_children = 0;        // child processes that executed others, not followed
  std::optional<Error> child_error;    // why the last of these was not, if that was tried
  std::vector<std::string> unmatched;  // patterns that nothing has matched, up to its end
  bool anything_patched = false;       // of what is recorded, at whatever time
  // Why the last one was not, if that was tried.
  std::optional<Error> not_followed;
  SiteCounts sites;  // when it ended
  // Functions of which values were asked for but not recorded, by reason.
  std::map<std::string, size_t> without_values;
  bool texts_unread = false;  // the program has a filter of system calls
  CollectedCounts collected;
  Status write_error;              // the first; what came behind it is incomplete
  tracedata::LostCalls lost = {};  // not recorded
  uint64_t bytes = 0;
  TraceEnd end = TraceEnd::kProgramEnded;
  std::optional<int> exit_code;  // of a command
  // Of a program that goes on:
  bool detached = false;  // all is as it was
  size_t put_back = 0;    // return addresses
  size_t busy = 0;        // threads that could not be left
  size_t modified = 0;    // sites whose memory is not what it was
  std::chrono::microseconds longest_hold = {};
  uint32_t holds = 0;
  std::vector<uint32_t> not_left;  // followed processes that could not be left whole
};

// Hears what is worth telling while it goes on.
using Notice = std::function<void(const std::string&)>;

// Why no site is a trap any more.
inline constexpr std::string_view kCallsLimited = "the program filters its system calls";

class TraceSession {
 public:
  // Starts or attaches, and patches. When it fails, nothing is left in a process that was attached
  // to, and a command that was started is ended.
  static Result<std::unique_ptr<TraceSession>> Begin(TraceOptions options, Executor& executor);
  ~TraceSession();
  TraceSession(const TraceSession&) = delete;
  TraceSession& operator=(const TraceSession&) = delete;

  [[nodiscard]] uint32_t pid() const { return target_->pid(); }
  // Can be read from when the program has ended; -1 where the kernel has none.
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }
  [[nodiscard]] const PatchCounts& begun_with() const { return summary_.patched; }
  // Where others ask and change it. It listens from before a command runs, as who sees that run may
  // ask at once. Where it cannot be made all else goes on, but nobody can ask.
  [[nodiscard]] const Result<std::unique_ptr<ControlServer>>& control() const { return control_; }

  // Whether the program runs still, as far as can be told now: what ended it.
  [[nodiscard]] std::optional<TraceEnd> Ended();
  // To be called now and then, and when asked_fd() can be read from: sees to libraries that
  // were loaded, looks at open calls, and tries again what threads stood in the way of. An error is
  // that of writing the trace, which goes on: what cannot be written is counted.
  Status Tend();
  [[nodiscard]] int asked_fd() const { return wake_.get(); }
  // Patterns that wait for a module to be loaded.
  [[nodiscard]] std::vector<std::string> Awaited() const { return functions_->Awaited(); }
  // Patterns that have matched nothing up to now.
  [[nodiscard]] std::vector<std::string> Unmatched();
  Result<PatchCounts> Apply(std::span<const PatternChoice> patterns);
  // Puts these filters and triggers in force instead of those that were; which stay if these only
  // switch tracing (OnlySwitchTracing).
  Result<PatchCounts> SetFilters(std::span<const tracedata::FilterOption> filters);
  // What is in force, and how many functions each of its options is about.
  [[nodiscard]] const CallFilters& filters() const { return functions_->filters(); }
  [[nodiscard]] std::span<const size_t> filter_matches() const {
    return functions_->filter_matches();
  }
  // Whether calls that begin now are recorded, or a trigger (or --tracing) has switched that off.
  [[nodiscard]] bool IsTracing() const;
  // Patched sites that somebody else has written to since.
  [[nodiscard]] size_t CountForeign() const;
  [[nodiscard]] SiteCounts CountSites() const { return functions_->Count(); }
  // Calls that were not recorded up to now.
  [[nodiscard]] tracedata::LostCalls lost() const;
  [[nodiscard]] CollectedCounts collected() const;
  // Processes beside the first one, which were forked and have executed other programs.
  [[nodiscard]] size_t followed() const { return followed_.size(); }
  // Ends it: leaves a program that goes on (after all, with `end` saying why), and completes the
  // trace.
  Result<TraceSummary> Finish(TraceEnd end);
  // For Ctrl-C and its like: a command has got it too where it came from a terminal.
  [[nodiscard]] os::ChildProcess* child() { return child_.get(); }

 private:
  explicit TraceSession(TraceOptions options) : options_(std::move(options)) {}
  // Of another process of the same trace.
  explicit TraceSession(TraceSession& first)
      : options_(first.options_), first_(&first), executor_(first.executor_) {
    // There may be many at a time, and most do not live long: it takes time to have memory.
    options_.chunks = std::max(options_.chunks / 4, std::min(options_.chunks, kLeastChunks));
  }
  Status Open();
  void MakeFunctions();
  void AnswerProgram();
  void SeeToProgram();
  Status TendProgram();
  void WatchSeccomp();
  Status LimitOwnCalls(const SeccompStatus& status);
  Status ReadNoTexts();
  void WatchTrapSignal();
  void RetryDeferred();
  Status Install();
  Status Prepare();
  Status Record(std::span<const PatternChoice> patterns, bool is_first);
  Result<PatchCounts> PutFilters(std::span<const tracedata::FilterOption> filters,
                                 bool each_must_match);
  std::unique_ptr<os::ExecFollower> BeginToFollow();
  void BeginToFollowChild(const Pool::Executing& executing);
  void FollowExec(os::ExecFollower& follower);
  Status CloseProgram(bool has_children);
  Status NoteExecuted(uint32_t pid) const;
  static Result<std::unique_ptr<os::ExecFollower>> FollowerOf(uint32_t pid, uint32_t own_tid);
  std::vector<TraceSession*> AllSessions();
  [[nodiscard]] tracedata::LostCalls OwnLost() const;
  Status OpenProgram(uint32_t pid, const os::HeldEntry& held,
                     const std::vector<PatternChoice>& patterns, bool has_children);
  void KeepForChildren(std::unique_ptr<Target> target);
  struct FollowedChild;
  void OpenFollowed(FollowedChild& child);
  void TendFollowed();
  [[nodiscard]] bool IsDone();
  void FinishFollowed(TraceSession& session);
  void FinishAllFollowed();
  void GiveUpFollowing();
  [[nodiscard]] Status CheckAnywhere(std::span<const PatternChoice> patterns);
  [[nodiscard]] bool IsGone(std::chrono::milliseconds patience) const;
  // For a trace that could not begin: what became of the program, nothing if it goes on.
  [[nodiscard]] std::optional<TraceEnd> EndedMeanwhile();
  void GiveUp();
  [[nodiscard]] Status RefuseIfNothing(const PatchCounts& counts) const;
  Status WriteFirstFacts();
  size_t CountSurely(size_t (PatchedFunctions::*count)() const) const;
  Status Leave(UntoldCalls& open);
  Status Collect(UntoldCalls open);
  void NoteUntold();
  Status LeaveOnce(UntoldCalls& open, LeaveOutcome& outcome);
  void NoteMatched() {
    first_->matched_.insert(functions_->matched().begin(), functions_->matched().end());
  }
  void NotePatched(const PatchCounts& counts) {
    anything_patched_ = anything_patched_ || counts.patched + counts.deferred != 0;
  }
  void NoteHolds(const Target& target);
  void DropPool();
  void WakeFor(int fd) const;
  void NoteUnwritten();
  Status WriteLastFacts();

  static constexpr uint32_t kLeastChunks = 16;
  // How long a process that has no memory any more takes to end.
  static constexpr std::chrono::milliseconds kEndPatience{1000};

  // A child that is about to execute another program, or has done so.
  struct FollowedChild {
    uint32_t pid = 0;
    os::Fd pidfd;
    uint32_t own_pid = 0;                    // as it sees itself
    const InstalledAgent* parent = nullptr;  // whose pool it recorded into
    std::vector<PatternChoice> patterns;
    std::unique_ptr<os::ExecFollower> follower;
    std::future<Result<bool>> executed;  // it is stopped at the entry of what it has executed
  };

  TraceOptions options_;
  // Whose the trace is: what is told once, and output_, numbers_, values_ and clock_ are its.
  TraceSession* first_ = this;
  Executor* executor_ = nullptr;
  // Of programs that were executed since:
  CollectedCounts collected_before_;
  tracedata::LostCalls lost_before_ = {};
  // The process is held while all is prepared: else it might be another program before that is
  // done.
  bool hold_throughout_ = false;
  SeccompStatus seccomp_;  // as it was when last looked at
  bool anything_patched_ = false;
  std::set<std::string> matched_;  // patterns, in programs that were executed since
  bool given_up_ = false;          // the process has executed a program that could not be followed
  std::unique_ptr<os::ChildProcess> child_;
  std::optional<os::HeldEntry> entry_;
  std::unique_ptr<Target> target_;
  os::Fd pidfd_;
  std::unique_ptr<InstalledAgent> agent_;
  std::unique_ptr<TraceOutput> output_;
  Result<std::unique_ptr<ControlServer>> control_;
  FunctionNumbers numbers_;
  std::unique_ptr<FunctionValues> values_;  // null: none are recorded
  std::unique_ptr<PatchedFunctions> functions_;
  std::unique_ptr<ChunkCollector> collector_;
  ClockMeasurement clock_measurement_;
  tracedata::TraceClock clock_;
  std::chrono::steady_clock::time_point next_look_;
  // When sites that threads are in the way of are tried again, and since when they are.
  std::chrono::steady_clock::time_point next_try_, tried_since_;
  std::chrono::steady_clock::time_point traps_watched_;
  TraceSummary summary_;
  bool finished_ = false;
  // Of one that is not the first: the process is no more, but children that it has forked are.
  bool has_ended_ = false;
  std::chrono::steady_clock::time_point next_look_at_children_;
  // Of the first one: what can be read from when anybody asks or has come to an entry (epoll), and
  // what is written to for the latter.
  os::Fd wake_, came_;
  std::vector<FollowedChild> following_;
  std::vector<std::unique_ptr<TraceSession>> followed_;
};

}  // namespace stackreel::tracer
