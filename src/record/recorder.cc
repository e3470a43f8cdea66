#include "record/recorder.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "os/child_process.h"
#include "os/privileged_program.h"
#include "os/proc.h"
#include "os/thread_pool.h"
#include "record/event_choice.h"
#include "record/event_set.h"
#include "record/keep_images.h"
#include "record/look_request.h"
#include "record/round_processor.h"
#include "record/round_queue.h"
#include "record/sample_trim.h"
#include "record/signals.h"
#include "record/targets.h"

namespace stackreel::record {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Notice = std::function<void(const std::string&)>;

// Rings are emptied at least this often, so that what was written stays near to what happened.
constexpr milliseconds kLongestRound{100};
constexpr milliseconds kShortestRound{5};
// While what they show may lead to larger stacks.
constexpr milliseconds kLongestWatchfulRound{25};
// While calls are traced, which may have returned by the time that their stacks are unwound.
constexpr milliseconds kLongestTracedRound{5};
constexpr milliseconds kCpuCheckTime{500};

double CpuSecondsOf(const struct rusage& usage) {
  const auto seconds = [](const struct timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double OwnCpuSeconds() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return CpuSecondsOf(usage);
}

bool IsReadable(int fd) {
  struct pollfd poll_fd = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&poll_fd, 1, 0) == 1;
}

class Recording {
 public:
  Recording(const RecordOptions& options, Notice notice)
      : options_(options), notice_(std::move(notice)) {
    if (options_.end_fd < 0) signals_.emplace();
  }

  Result<RecordSummary> Run();

 private:
  Status CheckOptions() const;
  [[nodiscard]] EventSettings SettingsFor(const Target& target) const;
  Status Prepare();
  Result<std::unique_ptr<RoundProcessor>> MakeProcessor();
  Status StartTarget();
  Status Loop();
  void HandleSignals();
  bool ShouldEnd();
  enum class Emptied : uint8_t { kOnce, kForLook };
  Status DrainAll(Emptied why = Emptied::kOnce);
  Status AnswerLook();
  Status DrainRing(const Ring& ring, std::vector<uint8_t>& out);
  void FollowCpus();
  [[nodiscard]] milliseconds Timeout() const;
  void End(std::string reason) {
    if (ended_by_.empty()) ended_by_ = std::move(reason);
  }
  void EndCommand();
  [[nodiscard]] RecordSummary NotExecuted(const Error& error) const;
  RecordSummary Summarise(const Status& worked);

  const RecordOptions& options_;
  Notice notice_;
  std::optional<Signals> signals_;  // none are heeded where there is an end_fd
  std::unique_ptr<os::ChildProcess> child_;
  Targets targets_;
  std::string fallback_;
  os::MaskProbe masks_probe_;
  os::MaskChoice masks_;
  std::unique_ptr<EventSet> set_;
  perfdata::EventTable table_;
  std::unique_ptr<RoundQueue> queue_;
  std::unique_ptr<Executor> readers_, unwinders_;
  std::unique_ptr<RoundProcessor> processor_;
  Counters counters_;            // of the thread that empties the rings
  Counters processor_counters_;  // of the one that works rounds off

  std::vector<uint32_t> cpus_;
  Clock::time_point start_, next_cpu_check_;
  std::optional<Clock::time_point> enable_at_;
  bool enabled_ = false;
  bool quiet_round_ = true;  // the last round was empty
  uint64_t rounds_ = 0;      // given to be worked off
  milliseconds round_time_ = kLongestRound;
  int end_signal_ = 0;      // for the command, if it does not end with us by itself
  bool cut_short_ = false;  // we ended the command, not it itself
  std::string ended_by_;
  std::string not_measured_;                 // see RecordSummary
  std::atomic<uint64_t> samples_taken_ = 0;  // from the rings
  double cpu_at_start_ = 0;
};

Status Recording::CheckOptions() const {
  const bool has_tasks = !options_.pids.empty() || !options_.tids.empty();
  if (options_.command.empty() && !has_tasks && !options_.system_wide) {
    return Fail(ErrorKind::kUsage, "what to record? -- COMMAND, -p PID, -t TID, -a or -C CPUS");
  }
  if (has_tasks && options_.system_wide) {
    return Fail(ErrorKind::kUsage,
                "-p and -t record single tasks, -a and -C all that run: only one of them at a "
                "time");
  }
  if (options_.stack_size % 8 != 0 || options_.stack_size > kLargestStack) {
    return Fail(
        ErrorKind::kUsage,
        fmt::format("a stack size of {} is not possible: the kernel takes multiples of 8 up "
                    "to {}",
                    options_.stack_size, kLargestStack));
  }
  if (options_.frequency == 0 && options_.period == 0) {
    return Fail(ErrorKind::kUsage, "a frequency of 0 records nothing");
  }
  if ((options_.mmap_pages & (options_.mmap_pages - 1)) != 0) {
    return Fail(ErrorKind::kUsage,
                fmt::format("{} pages: a ring's pages are a power of two", options_.mmap_pages));
  }
  TRY(ParseSwitchOutput(options_.switch_output));
  if (options_.output == "-" && !options_.switch_output.empty()) {
    return Fail(ErrorKind::kUsage, "a pipe cannot be switched: give a file with -o");
  }
  return {};
}

EventSettings Recording::SettingsFor(const Target& target) const {
  EventSettings settings = SettingsOf(options_);
  settings.masks = masks_.route;
  // A second event beside each of a great many costs more than it saves.
  constexpr size_t kMostDescriptors = 4096;
  if (!settings.larger_stacks.empty() &&
      target.cpus.size() * target.tids.size() > kMostDescriptors) {
    settings.stack_size = settings.larger_stacks.back();
    settings.larger_stacks.clear();
    settings.keep_user_chain = true;
  }
  return settings;
}

Status Recording::Prepare() {
  TRY(CheckOptions());
  TRY_ASSIGN(targets_, Targets::Find(options_));
  if (!options_.command.empty()) {
    const os::SignalState inherited = signals_ ? signals_->inherited() : os::SignalState::Current();
    TRY_ASSIGN(child_,
               os::ChildProcess::Prepare(options_.command, options_.output == "-", inherited));
    TRY_ASSIGN(const std::string file, os::FindCommand(options_.command.front()));
    not_measured_ = os::WhyNotMeasured(file);
  }
  if (options_.RecordsCommand()) targets_.Add(child_->pid());
  TRY_ASSIGN(cpus_, os::OnlineCpus());
  for (const uint32_t cpu : options_.cpus) {
    if (std::ranges::binary_search(cpus_, cpu)) continue;
    return Fail(ErrorKind::kNotFound, fmt::format("there is no CPU {} to record; online: {}", cpu,
                                                  os::FormatCpuList(cpus_)));
  }
  Target target;
  target.system_wide = options_.system_wide;
  target.tids = targets_.Tids();
  target.cpus = options_.cpus.empty() ? cpus_ : options_.cpus;

  masks_probe_ = os::ProbeKernelMasks();
  masks_ = os::ChooseMaskRoute(masks_probe_, options_.masks.value_or(os::MaskRoute::kRecords));
  if (options_.masks && !masks_probe_.has_codes) {
    notice_("this CPU or kernel has no pointer authentication: no masks are recorded");
  } else if (options_.masks && masks_.route != *options_.masks) {
    notice_("masks of pointer authentication: " + os::DescribeMasks(masks_));
  }
  const int pid = options_.system_wide ? -1 : static_cast<int>(target.tids.front());
  const EventSettings settings = SettingsFor(target);
  TRY_ASSIGN(ChosenEvents chosen, ChooseEvents(options_.events, settings, pid,
                                               static_cast<int>(target.cpus.front()), notice_));
  fallback_ = chosen.fallback;
  if (!fallback_.empty()) notice_(fallback_);
  TRY_ASSIGN(set_, EventSet::Open(std::move(chosen.list), target, options_.inherit,
                                  options_.mmap_pages, settings.larger_stacks));
  for (const perfdata::Event& event : set_->events()) table_.Add(event);
  // Half of what a ring may hold: a ring whose own task has ended wakes nobody.
  const uint64_t rate = std::max<uint64_t>(ExpectedBytesPerSecond(set_->list()), 1);
  const uint64_t ring_bytes = set_->ring_pages() * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  round_time_ =
      std::clamp(milliseconds(ring_bytes * 1000 / rate / 2), kShortestRound, kLongestRound);
  return {};
}

Result<std::unique_ptr<RoundProcessor>> Recording::MakeProcessor() {
  ProcessorOptions options;
  options.path = options_.output;
  options.compression_level = options_.compression_level.value_or(1);
  const bool has_stacks = std::ranges::any_of(set_->events(), [](const perfdata::Event& event) {
    return (event.attr.sample_type & perfdata::kSampleStackUser) != 0;
  });
  options.unwind_live = has_stacks && options_.unwind == UnwindWhen::kLive;
  options.max_size = options_.max_size;
  TRY_ASSIGN(options.switch_output, ParseSwitchOutput(options_.switch_output));
  if (!options_.RecordsCommand()) options.pids = targets_.pids();
  options.all_processes = options_.system_wide;
  options.data_mappings = SettingsOf(options_).data_mappings;
  options.namespaces = options_.namespaces;
  options.cgroups = options_.cgroups;
  options.masks = masks_.route;
  options.cmdline = options_.cmdline;
  options.groups = set_->list().groups;
  options.clockid = options_.clockid;

  // A quarter of a gigabyte at most, and less on a small machine.
  const uint64_t memory =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  queue_ = std::make_unique<RoundQueue>(std::min<uint64_t>(uint64_t{256} << 20, memory / 16));
  constexpr size_t kRingsPerReader = 16;
  readers_ = os::MakeThreadPool(std::min<size_t>(4, 1 + set_->rings().size() / kRingsPerReader));
  // More than a few have nothing to do: each unwinds over a hundred thousand samples a second.
  constexpr size_t kMostUnwinders = 8;
  const size_t unwinders = std::min<size_t>(os::AvailableCpuCount(), kMostUnwinders);
  unwinders_ = os::MakeThreadPool(options.unwind_live ? unwinders : 1);
  return RoundProcessor::Create(options, set_->events(), *queue_, *unwinders_, processor_counters_);
}

Status Recording::StartTarget() {
  start_ = Clock::now();
  next_cpu_check_ = start_ + kCpuCheckTime;
  if (options_.delay_ms > 0) enable_at_ = start_ + milliseconds(options_.delay_ms);
  // A command's events come on when it executes, unless they wait for the delay.
  enabled_ = options_.delay_ms == 0;
  if (enabled_ && !options_.RecordsCommand()) TRY(set_->Enable());
  return child_ != nullptr ? child_->Start() : Status();
}

// ---- while it runs ----

milliseconds Recording::Timeout() const {
  const Clock::time_point now = Clock::now();
  milliseconds timeout =
      set_->may_use_larger_stacks() ? std::min(round_time_, kLongestWatchfulRound) : round_time_;
  if (processor_->any_traced()) timeout = std::min(timeout, kLongestTracedRound);
  const auto until = [&](Clock::time_point when) {
    timeout = std::min(timeout, std::chrono::ceil<milliseconds>(when - now));
  };
  if (enable_at_) until(*enable_at_);
  if (options_.duration_s) {
    until(start_ +
          std::chrono::ceil<Clock::duration>(std::chrono::duration<double>(*options_.duration_s)));
  }
  return std::max(timeout, milliseconds(0));
}

Status Recording::Loop() {
  const os::Fd child_end = child_ != nullptr ? OpenPidFd(child_->pid()) : os::Fd();
  std::vector<struct pollfd> fds;
  const auto watch = [&fds](int fd) { fds.push_back({.fd = fd, .events = POLLIN, .revents = 0}); };
  size_t rings_watched = 0;
  while (!ShouldEnd()) {
    if (rings_watched != set_->rings().size()) {
      fds.clear();
      watch(signals_ ? signals_->fd() : options_.end_fd);
      watch(child_end.get());
      watch(options_.look != nullptr ? options_.look->fd() : -1);
      for (const Ring& ring : set_->rings()) watch(set_->PollFd(ring));
      rings_watched = set_->rings().size();
    }
    poll(fds.data(), fds.size(), static_cast<int>(Timeout().count()));
    // A ring whose own task has ended is ready for ever; it is looked at when time is up.
    for (struct pollfd& fd : fds) {
      if ((fd.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) fd.fd = -1;
    }
    HandleSignals();
    if (enable_at_ && Clock::now() >= *enable_at_) {
      enable_at_.reset();
      enabled_ = true;
      TRY(set_->Enable());
    }
    TRY(AnswerLook());
    TRY(DrainAll());
    if (set_->may_use_larger_stacks() && processor_->too_small_dump() >= set_->stack_size()) {
      TRY(set_->UseLargerStacks(enabled_));
    }
    if (Clock::now() >= next_cpu_check_) FollowCpus();
  }
  (void)set_->Disable();
  // Twice: what comes between the last look at one ring and the disabling of another.
  TRY(DrainAll());
  return DrainAll();
}

void Recording::HandleSignals() {
  while (const auto info = signals_ ? signals_->Next() : std::nullopt) {
    const int signal = static_cast<int>(info->ssi_signo);
    if (signal == SIGUSR2) {
      if (processor_) processor_->RequestSwitch();
    } else if (signal == SIGUSR1) {
      enabled_ = !enabled_;
      enable_at_.reset();
      (void)(enabled_ ? set_->Enable() : set_->Disable());
    } else {
      const bool command_got_it = os::CommandGotItToo(*info);
      // Some commands answer ^\\ with a report and go on.
      if (signal == SIGQUIT && command_got_it && child_ != nullptr) continue;
      End(std::string("SIG") + sigabbrev_np(signal));
      if (!command_got_it) end_signal_ = signal;
    }
  }
}

bool Recording::ShouldEnd() {
  if (child_ != nullptr && child_->Wait(/*block=*/false)) End("command ended");
  if (options_.end_fd >= 0 && IsReadable(options_.end_fd)) End("told to");
  if (!ended_by_.empty()) return true;
  if (options_.duration_s &&
      Clock::now() - start_ >= std::chrono::duration<double>(*options_.duration_s)) {
    End("duration");
  }
  if (processor_->reached_max_size()) End("max size");
  if (processor_->failed()) End("write failed");
  if (!options_.RecordsCommand() && !options_.system_wide && targets_.AllGone())
    End("target ended");
  if (!ended_by_.empty()) {
    end_signal_ = SIGTERM;
    cut_short_ = true;
  }
  return !ended_by_.empty();
}

// Who asks waits until all that was sampled up to now is worked off; the second round lets go what
// the sorter holds back of the first.
Status Recording::AnswerLook() {
  if (options_.look == nullptr || !IsReadable(options_.look->fd())) return {};
  constexpr milliseconds kPatience{200};
  const uint64_t asked = options_.look->Take();
  TRY(DrainAll(Emptied::kForLook));
  TRY(DrainAll(Emptied::kForLook));
  processor_->AwaitRounds(rounds_, kPatience);
  options_.look->Answer(asked);
  return {};
}

Status Recording::DrainAll(Emptied why) {
  const std::vector<Ring>& rings = set_->rings();
  Round round = queue_->TakeEmpty(rings.size());
  std::vector<Status> results(rings.size());
  readers_->ParallelFor(
      rings.size(), [&](size_t i, size_t) { results[i] = DrainRing(rings[i], round.rings[i]); });
  for (Status& result : results) TRY(std::move(result));
  // One empty round lets go what the sorter held back; more would say nothing.
  const bool quiet = round.bytes() == 0;
  if (quiet && quiet_round_ && why == Emptied::kOnce && !processor_->SwitchIsDue()) {
    queue_->Recycle(std::move(round));
    return {};
  }
  quiet_round_ = quiet;
  queue_->Push(std::move(round));
  ++rounds_;
  return {};
}

// Copies a ring's records out, stacks without what the kernel did not fill.
Status Recording::DrainRing(const Ring& ring, std::vector<uint8_t>& out) {
  uint64_t samples = 0;
  const auto consume = [&](ByteView record) -> Status {
    const auto type = LoadUnaligned<uint32_t>(record.data(), kNativeEndian);
    const bool is_sample = type == static_cast<uint32_t>(perfdata::RecordType::kSample);
    samples += is_sample ? 1 : 0;
    // header 8 | IDENTIFIER 8; of other records it is the last word.
    const size_t id_at = is_sample ? 8 : record.size() - 8;
    if (record.size() < 16) {
      out.insert(out.end(), record.begin(), record.end());
      return {};
    }
    const auto id = set_->KnownId(LoadUnaligned<uint64_t>(record.data() + id_at, kNativeEndian));
    const size_t start = out.size();
    const auto event = is_sample ? table_.IndexOf(id) : std::nullopt;
    if (event) {
      AppendTrimmed(record, set_->events()[*event].attr, out);
    } else {
      out.insert(out.end(), record.begin(), record.end());
    }
    const size_t new_id_at = is_sample ? start + 8 : out.size() - 8;
    StoreUnaligned<uint64_t>(out.data() + new_id_at, id, kNativeEndian);
    return {};
  };
  TRY(ring.ring->Drain(consume));
  samples_taken_ += samples;
  return {};
}

// A CPU that goes takes its system-wide events with it; one that comes has none yet.
void Recording::FollowCpus() {
  next_cpu_check_ = Clock::now() + kCpuCheckTime;
  if (!options_.inherit && !options_.system_wide) return;
  const auto online = os::OnlineCpus();
  if (!online || *online == cpus_) return;
  for (const uint32_t cpu : *online) {
    const bool was_there = std::ranges::binary_search(cpus_, cpu);
    const bool wanted =
        options_.cpus.empty() || std::ranges::find(options_.cpus, cpu) != options_.cpus.end();
    const bool has_events = std::ranges::any_of(
        set_->rings(), [cpu](const Ring& ring) { return ring.cpu == static_cast<int>(cpu); });
    // Events of tasks wait for their CPU to come back.
    if (was_there || !wanted || (has_events && !options_.system_wide)) continue;
    const Status added = set_->AddCpu(cpu, processor_->RunningTasks(), enabled_);
    if (added) {
      notice_(fmt::format("CPU {} came online: recorded too", cpu));
    } else {
      counters_.Add("record.cpu_not_recorded");
      notice_(
          fmt::format("CPU {} came online, but is not recorded: {}", cpu, added.error().message));
    }
  }
  for (const uint32_t cpu : cpus_) {
    if (!std::ranges::binary_search(*online, cpu)) {
      notice_(fmt::format("CPU {} went offline", cpu));
    }
  }
  cpus_ = *online;
}

// ---- the end ----

Result<RecordSummary> Recording::Run() {
  cpu_at_start_ = OwnCpuSeconds();
  TRY(Prepare());
  TRY_ASSIGN(processor_, MakeProcessor());
  Status worked;
  TRY_ASSIGN(std::thread worker, os::StartThread([&] { worked = processor_->Run(); }));
  Status recorded = StartTarget();
  const bool started = recorded.has_value();
  // Nothing that was there gives way before.
  if (started) recorded = processor_->Publish();
  const bool published = recorded.has_value();
  if (published && options_.begun) options_.begun();
  if (published) recorded = Loop();
  queue_->Close();
  worker.join();
  if (!published) {
    if (!started && child_ != nullptr) return NotExecuted(recorded.error());
    end_signal_ = SIGTERM;
    if (started) EndCommand();
    return Fail(std::move(recorded.error()));
  }
  const Status finished = processor_->Finish(set_->ReadLost());
  if (options_.buildid_cache) {
    if (const Status kept = KeepImages(processor_->kernel(), processor_->vdsos()); !kept) {
      notice_("kallsyms and the vDSO are not kept: " + kept.error().ToString());
    }
  }
  EndCommand();
  TRY(std::move(recorded));
  return Summarise(worked ? finished : worked);
}

// Waits for the command, after telling it to end where that is ours to do. A further signal ends
// the waiting, not the command.
void Recording::EndCommand() {
  if (child_ == nullptr) return;
  if (end_signal_ != 0) child_->Signal(end_signal_);
  const os::Fd ended = OpenPidFd(child_->pid());
  while (!child_->Wait(/*block=*/false)) {
    std::array<struct pollfd, 2> fds = {
        {{.fd = signals_ ? signals_->fd() : -1, .events = POLLIN, .revents = 0},
         {.fd = ended.get(), .events = POLLIN, .revents = 0}}};
    poll(fds.data(), fds.size(), static_cast<int>(kLongestRound.count()));
    if (signals_ && signals_->Next()) {
      notice_("not waiting for the command, which goes on");
      return;
    }
  }
}

// The command could not be executed: there is nothing to keep.
RecordSummary Recording::NotExecuted(const Error& error) const {
  RecordSummary summary;
  summary.exec_error = error.ToString();
  summary.exit_code = child_->Wait(/*block=*/false);
  return summary;
}

RecordSummary Recording::Summarise(const Status& worked) {
  const ProcessorTotals& totals = processor_->totals();
  RecordSummary summary;
  summary.samples = totals.samples_written;
  summary.write_failed = !worked.has_value();
  if (summary.write_failed) {
    summary.not_written = samples_taken_ - std::min(samples_taken_.load(), summary.samples);
  }
  if (options_.RecordsCommand()) summary.not_measured = not_measured_;
  summary.lost = totals.lost_in_records;
  summary.user_stacks = totals.user_stacks;
  summary.complete_stacks = totals.complete_stacks;
  summary.bytes = totals.bytes;
  summary.wall_s = std::chrono::duration<double>(Clock::now() - start_).count();
  summary.cpu_s = OwnCpuSeconds() - cpu_at_start_;
  summary.event = set_->events().front().name;
  const auto others = std::ranges::count_if(
      set_->events().begin() + 1, set_->events().end(), [](const perfdata::Event& event) {
        return event.attr.type != perfdata::kTypeSoftware ||
               event.attr.config != PERF_COUNT_SW_DUMMY;  // which only tracks
      });
  if (others != 0) {
    summary.event += fmt::format(" and {} other event{}", others, others == 1 ? "" : "s");
  }
  summary.fallback = fallback_;
  if (masks_probe_.has_codes) summary.masks = os::DescribeMasks(masks_);
  if (child_ != nullptr && !cut_short_) summary.exit_code = child_->Wait(/*block=*/false);
  counters_.Add("record.spilled_bytes", queue_->spilled_bytes());
  counters_.Merge(processor_counters_);
  counters_.Add("record.stack_size", set_->stack_size());
  summary.counters = counters_;
  summary.ended_by = worked ? ended_by_ : worked.error().message;
  summary.files = totals.files;
  return summary;
}

}  // namespace

Result<RecordSummary> Record(const RecordOptions& options, const Notice& notice) {
  return Recording(options, notice).Run();
}

}  // namespace stackreel::record
