#include "tracer/trace_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <system_error>
#include <thread>
#include <utility>

#include "os/proc.h"
#include "tracer/forked_children.h"
#include "tracer/harmful_filters.h"
#include "tracer/trace_clock.h"

namespace stackreel::tracer {

namespace {

using std::chrono::steady_clock;
using tracedata::AgentControl;
using namespace std::chrono_literals;

// How long threads in the agent are waited for when a program is left, and how long it runs between
// two tries: at least, and so many times as long as it was held for the last.
constexpr auto kLeavePatience = 3000ms;
constexpr auto kLeavePause = 2ms;
constexpr int kLeavePauseForHold = 4;
// How far apart looks at open calls are at least, and how much longer than a look takes.
constexpr auto kBetweenLooks = 50ms;
constexpr int kLookShare = 20;
// How often it is looked whether the program lets traps be traps; it is held for that.
constexpr auto kBetweenWatchingTraps = 1000ms;
// How long a process that has no memory any more takes to end.
constexpr auto kEndPatience = 1000ms;
// The same for a program that is at its very start when it is attached to.
constexpr int kStartTries = 50;
// How often a process is attached to that becomes another program meanwhile.
constexpr int kBeginTries = 20;
constexpr auto kStartPause = 2ms;

}  // namespace

Result<std::unique_ptr<TraceSession>> TraceSession::Begin(TraceOptions options,
                                                          Executor& executor) {
  for (int i = 1; true; ++i) {
    std::unique_ptr<TraceSession> session(new TraceSession(std::move(options)));
    session->executor_ = &executor;
    session->hold_throughout_ = i > 1;
    Status begun = session->Open();
    if (begun) begun = session->Prepare();
    if (begun) return session;
    // What failed then is only a consequence.
    const auto end = session->EndedMeanwhile();
    const uint32_t pid = session->target_ == nullptr ? 0 : session->pid();
    session->GiveUp();
    // A process that has become another program meanwhile is attached to as that.
    if (end == TraceEnd::kExecuted && session->child_ == nullptr && i < kBeginTries) {
      options = std::move(session->options_);
      continue;
    }
    if (end) {
      const bool executed = end == TraceEnd::kExecuted;
      begun = Fail(ErrorKind::kNotFound,
                   fmt::format("process {} {} while it was being prepared for tracing", pid,
                               executed ? "executed another program" : "ended"));
    }
    return Fail(std::move(begun.error()));
  }
}

// What was begun is of no use: it is undone, and a command is ended.
void TraceSession::GiveUp() {
  if (child_ != nullptr) {
    child_->Signal(SIGKILL);
    child_->Wait(/*block=*/true);
  } else if (target_ != nullptr) {
    UntoldCalls open;
    (void)Leave(open);
    if (target_->held()) (void)target_->LetGo();
  }
  if (collector_ != nullptr) (void)collector_->Stop();
  if (output_ != nullptr) output_->Discard();
  finished_ = true;
}

// What can be refused without touching the process.
Status TraceSession::Open() {
  if (options_.pid == 0) {
    TRY_ASSIGN(child_, os::ChildProcess::Prepare(options_.command, /*stdout_to_stderr=*/false,
                                                 options_.signals));
    TRY_ASSIGN(entry_, os::StartToEntry(*child_));
  }
  TRY_ASSIGN(target_, Target::Open(child_ != nullptr ? child_->pid() : options_.pid));
  const auto pid = static_cast<pid_t>(target_->pid());
  pidfd_ = os::Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  // A command does not run before all is patched.
  if (entry_) {
    TRY(target_->Hold());
    TRY(target_->Write(entry_->at, entry_->original));
  } else if (hold_throughout_) {
    TRY(target_->Hold());
  }
  MakeFunctions();
  TRY_ASSIGN(const CallFilters filters, CallFilters::Parse(options_.filters));
  TRY(functions_->CheckFilters(filters));
  return functions_->Check(options_.patterns);
}

void TraceSession::MakeFunctions() {
  const auto facts = [this](const tracedata::TraceFact& fact) { return output_->Add(fact); };
  functions_ =
      std::make_unique<PatchedFunctions>(*target_, facts, numbers_, *executor_, options_.traps);
  if (options_.values.empty()) return;
  // One for all programs that follow each other: its enumerations' numbers are the trace's.
  if (values_ == nullptr) values_ = std::make_unique<FunctionValues>(options_.values, facts);
  functions_->UseValues(*values_);
}

// All that is done to the target before it is known what the sites will be, in one moment.
Status TraceSession::Install() {
  for (int i = 0; true; ++i) {
    {
      TRY_ASSIGN(const Holding holding, Holding::Of(*target_));
      // A program that was executed just now has a thread pointer soon.
      const bool is_early = std::ranges::any_of(
          target_->threads().threads(), [this](const os::StoppedProcess::Thread& thread) {
            return thread.pid == target_->pid() && thread.thread_pointer.value == 0;
          });
      // That it has none in the end is said by what needs it.
      if (!is_early || entry_ || i == kStartTries) {
        TRY(RefuseHarmfulFilters(*target_, options_.force));
        TRY_ASSIGN(agent_,
                   InstalledAgent::Install(*target_, {.chunks = options_.chunks,
                                                      .on_full = options_.on_full,
                                                      .await_libraries = options_.await_libraries,
                                                      .follow = options_.follow}));
        functions_->UseAgent(agent_->place(), /*always_needed=*/options_.follow);
        return functions_->Reserve();
      }
    }
    if (hold_throughout_) TRY(target_->LetGo());
    std::this_thread::sleep_for(kStartPause);
    if (hold_throughout_) TRY(target_->Hold());
  }
}

Status TraceSession::Prepare() {
  TRY(Install());
  std::future<Status> filled =
      std::async(std::launch::async, [this] { return agent_->pool().Fill(); });
  TRY_ASSIGN(output_, TraceOutput::Create(options_.output, options_.level));
  clock_ = clock_measurement_.Finish();
  TRY(WriteFirstFacts());
  TRY(functions_->Prepare(options_.patterns));
  TRY(filled.get());
  return Record(options_.patterns, /*is_first=*/true);
}

// Where not one function can be recorded, nor may be later, there is nothing to trace.
Status TraceSession::RefuseIfNothing(const PatchCounts& counts) const {
  const bool may_come = options_.follow || !functions_->Awaited().empty();
  if (counts.patched != 0 || counts.deferred != 0 || may_come) return {};
  // Each pattern names something, as has been checked.
  if (counts.refused.empty()) {
    return Fail(Error(ErrorKind::kNotFound,
                      "all functions that -P names are left out again by what follows it")
                    .WithCure("of several patterns that match, the last decides: -U before -P"));
  }
  std::string why;
  for (const auto& [reason, count] : counts.refused) {
    why += fmt::format("{}{} {}", why.empty() ? "" : "; ", count, reason);
  }
  return Fail(Error(ErrorKind::kUnsupported,
                    fmt::format("none of the functions that are named can be patched: {}", why))
                  .WithCure("name others as well, or those that call them"));
}

Status TraceSession::Record(std::span<const PatternChoice> patterns, bool is_first) {
  if (entry_) TRY(agent_->MapPoolPages(*target_));
  collector_ =
      std::make_unique<ChunkCollector>(agent_->pool(), *output_, target_->pid(), next_thread_);
  collector_->Start();
  TRY(agent_->SetRecording(*target_, true));
  if (!options_.filters.empty()) {
    TRY_ASSIGN(PatchCounts acting, PutFilters(options_.filters, /*each_must_match=*/is_first));
    if (is_first) summary_.acting = std::move(acting);
  }
  TRY_ASSIGN(PatchCounts patched,
             is_first ? functions_->Apply(patterns) : functions_->TakeOver(patterns));
  if (patched.patched == 0 && !patched.error.empty()) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("process {} cannot be patched: {}", target_->pid(), patched.error));
  }
  if (is_first) {
    TRY(RefuseIfNothing(patched));
    summary_.patched = std::move(patched);
  } else {
    summary_.followed.patched += patched.patched;
  }
  TRY(output_->Flush());
  WatchSeccomp();
  return entry_ || hold_throughout_ ? target_->LetGo() : Status();
}

Status TraceSession::WriteFirstFacts() {
  TRY(output_->Add(clock_));
  return output_->Add(DescribeHost(target_->pid()));
}

TraceSession::~TraceSession() {
  if (finished_ || target_ == nullptr) return;
  UntoldCalls open;
  (void)Leave(open);
  (void)Collect(std::move(open));
}

bool TraceSession::IsGone(std::chrono::milliseconds patience) const {
  if (!pidfd_.valid()) return os::ListThreads(target_->pid()).empty();
  pollfd poll_fd = {.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  return poll(&poll_fd, 1, static_cast<int>(patience.count())) > 0;
}

std::optional<TraceEnd> TraceSession::Ended() {
  if (IsGone(0ms)) return TraceEnd::kProgramEnded;
  if (given_up_) return TraceEnd::kExecuted;
  if (!target_->MemoryIsGone()) return std::nullopt;
  // The memory that was opened is the old program's; or it is about to end, and has none any more.
  const auto maps = os::ReadProcMaps(target_->pid());
  if (maps && !maps->empty()) return TraceEnd::kExecuted;
  (void)IsGone(kEndPatience);
  return TraceEnd::kProgramEnded;
}

std::optional<TraceEnd> TraceSession::EndedMeanwhile() {
  return target_ == nullptr ? std::nullopt : Ended();
}

void TraceSession::AnswerProgram() {
  uint64_t count = 0;
  (void)!read(collector_->asked_fd(), &count, sizeof(count));
  tracedata::PoolHeader& pool = agent_->pool().header();
  const uint32_t asked = pool.asked;
  if (asked == pool.answered && functions_->HearsOfLibraries()) return;
  pool.seen = asked;
  NoteUntold();
  // What fails now is tried again at the next request; the program waits no longer than for one
  // try.
  if (const auto followed = functions_->FollowLibraries(); followed && followed->matched != 0) {
    summary_.followed.matched += followed->matched;
    summary_.followed.patched += followed->patched;
    (void)output_->Flush();
  }
  const auto follower = options_.follow ? BeginToFollow() : nullptr;
  agent_->pool().Answer(asked);
  if (follower != nullptr) FollowExec(*follower);
}

// Takes hold of the thread that is about to execute another program, if one is.
std::unique_ptr<os::ExecFollower> TraceSession::BeginToFollow() {
  const Avma at = agent_->place().control() + offsetof(AgentControl, executing_tid);
  const auto own_id = target_->ReadObject<uint32_t>(at);
  if (!own_id || *own_id == 0 || !target_->WriteObject<uint32_t>(at, 0)) return nullptr;
  OwnIds ids;
  for (const uint32_t tid : os::ListThreads(target_->pid())) {
    if (ids.Of(target_->pid(), tid) != *own_id) continue;
    auto follower = os::ExecFollower::Begin(target_->pid(), tid);
    if (follower) return std::move(*follower);
    summary_.not_followed = std::move(follower.error());
  }
  return nullptr;
}

void TraceSession::FollowExec(os::ExecFollower& follower) {
  auto held = follower.Await();
  if (held && !*held) return;  // it could not be executed, and the program goes on
  Status closed = CloseProgram();
  if (!closed && summary_.write_error) summary_.write_error = std::move(closed);
  Status followed = held ? OpenExecuted(**held) : Fail(std::move(held.error()));
  if (followed) {
    ++summary_.executed;
    return;
  }
  given_up_ = true;
  const bool may_have_ended = followed.error().kind == ErrorKind::kNotFound ||
                              followed.error().kind == ErrorKind::kInterrupted;
  if (!IsGone(may_have_ended ? kEndPatience : 0ms)) {
    summary_.not_followed = std::move(followed.error());
  }
}

// What was the program is no more.
Status TraceSession::CloseProgram() {
  Status stopped = collector_->Stop();
  Status taken = collector_->TakeOwned({}, /*all=*/false);
  agent_->pool().Drop();
  collected_before_ += collector_->counts();
  next_thread_ = collector_->next_thread();
  collector_.reset();
  TRY(std::move(stopped));
  TRY(std::move(taken));
  std::error_code error;
  const auto path =
      std::filesystem::read_symlink(fmt::format("/proc/{}/exe", target_->pid()), error);
  return output_->Add(tracedata::ProcessExec{
      .ticks = NowTicks(), .pid = target_->pid(), .path = error ? "" : path.string()});
}

// The program that has taken its place is held at its entry.
Status TraceSession::OpenExecuted(const os::HeldEntry& held) {
  entry_ = held;
  const uint32_t pid = target_->pid();
  const auto in_force = functions_->in_force();
  const std::vector<PatternChoice> patterns(in_force.begin(), in_force.end());
  TRY_ASSIGN(auto target, Target::Open(pid));
  const Status stopped = target->Hold();
  // If it cannot be traced it is not to stay there.
  TRY(target->Write(held.at, held.original));
  TRY(stopped);
  const auto was = std::exchange(target_, std::move(target));
  MakeFunctions();
  auto agent = std::exchange(agent_, nullptr);
  agent_reads_no_texts_ = false;
  Status begun = functions_->Check(patterns, /*each_must_match=*/false);
  if (begun) begun = Install();
  if (begun) begun = agent_->pool().Fill();
  if (begun) begun = functions_->Prepare(patterns);
  if (begun) begun = Record(patterns, /*is_first=*/false);
  if (begun) return {};
  UntoldCalls open;
  (void)Leave(open);
  if (agent_ == nullptr) agent_ = std::move(agent);
  if (target_->held()) (void)target_->LetGo();
  return begun;
}

// What a program that is killed has open is known as of the last look.
void TraceSession::NoteUntold() {
  const auto before = steady_clock::now();
  (void)collector_->NoteUntold([this] { return ReadUntoldCalls(*target_, agent_->place()); });
  const auto after = steady_clock::now();
  next_look_ =
      after + std::max<steady_clock::duration>(kBetweenLooks, kLookShare * (after - before));
}

// Where a filter looks at system calls, one that reads a text might end the program. What it says
// of that one is not to be learnt.
void TraceSession::WatchSeccomp() {
  if (values_ == nullptr || !values_->reads_texts() || agent_reads_no_texts_) return;
  if (StatusLine(target_->pid(), "Seccomp") != "2") return;
  summary_.texts_unread = true;
  agent_reads_no_texts_ = true;
  (void)target_->WriteObject(agent_->place().control() + offsetof(AgentControl, no_text_reads),
                             uint32_t{1});
}

Status TraceSession::Tend() {
  if (given_up_) return {};
  AnswerProgram();
  WatchSeccomp();
  if (!given_up_ && steady_clock::now() >= next_look_) NoteUntold();
  if (given_up_) return {};
  // What cannot be done now is tried the next time; what states sites are in says it all.
  (void)functions_->Retry();
  if (const auto now = std::chrono::steady_clock::now();
      options_.traps && now - traps_watched_ > kBetweenWatchingTraps) {
    traps_watched_ = now;
    (void)functions_->WatchTraps();
  }
  TRY(collector_->status());
  return output_->StillThere();
}

Result<PatchCounts> TraceSession::Apply(std::span<const PatternChoice> patterns) {
  TRY_ASSIGN(PatchCounts counts, functions_->Apply(patterns));
  TRY(output_->Flush());
  return counts;
}

Result<PatchCounts> TraceSession::PutFilters(std::span<const tracedata::FilterOption> filters,
                                             bool each_must_match) {
  TRY_ASSIGN(CallFilters parsed, CallFilters::Parse(filters));
  return functions_->SetFilters(std::move(parsed), clock_.ticks_per_second, each_must_match);
}

Result<PatchCounts> TraceSession::SetFilters(std::span<const tracedata::FilterOption> filters) {
  const bool only_switches = tracedata::OnlySwitchTracing(filters);
  std::vector<tracedata::FilterOption> all;
  if (only_switches) {
    all = options_.filters;
    std::erase_if(all, tracedata::IsOfTracing);
  }
  all.insert(all.end(), filters.begin(), filters.end());
  // Those that stay have matched once; of what, may have been unloaded since.
  TRY_ASSIGN(PatchCounts counts, PutFilters(all, /*each_must_match=*/!only_switches));
  options_.filters = std::move(all);
  TRY(output_->Flush());
  return counts;
}

bool TraceSession::IsTracing() const {
  const auto off = target_->ReadObject<uint32_t>(agent_->place().control() +
                                                 offsetof(AgentControl, tracing_off));
  return !off || *off == 0;
}

// One moment of holding: code as it was, then what is left on stacks.
Status TraceSession::LeaveOnce(UntoldCalls& open, LeaveOutcome& outcome) {
  TRY_ASSIGN(const Holding held, Holding::Of(*target_));
  const auto unpatch = [this](PatchedFunctions::Which which) -> Status {
    TRY_ASSIGN(const PatchCounts counts, functions_->UnpatchAll(which));
    return counts.error.empty() ? Status() : Fail(ErrorKind::kIo, counts.error);
  };
  TRY(unpatch(PatchedFunctions::Which::kRecording));
  std::vector<patch::Site> sites;
  for (size_t i = 0; i < functions_->sites().size(); ++i) {
    sites.push_back(functions_->sites().site(i));
  }
  TRY_ASSIGN(const auto code, AgentCodeRanges(*target_, agent_->place(), sites));
  TRY_ASSIGN(outcome, PutReturnAddressesBack(*target_, agent_->place(), code, open));
  summary_.put_back += outcome.put_back;
  if (outcome.busy != 0) return {};
  TRY(unpatch(PatchedFunctions::Which::kStackWalkers));
  return MarkLeft(*target_, agent_->place());
}

Status TraceSession::Leave(UntoldCalls& open) {
  if (agent_ == nullptr) return {};
  // Nobody is to wait in the agent.
  agent_->pool().Answer(agent_->pool().header().asked);
  LeaveOutcome outcome;
  Status left;
  // The collector goes on meanwhile: a thread that waits for a free chunk is in the agent. Where
  // there are many threads for few cores, one that is in the agent needs its turn to leave it.
  const auto deadline = std::chrono::steady_clock::now() + kLeavePatience;
  while (true) {
    left = LeaveOnce(open, outcome);
    if (!left || outcome.busy == 0 || std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(std::max<std::chrono::microseconds>(
        kLeavePause, kLeavePauseForHold * target_->last_hold()));
  }
  summary_.busy = outcome.busy;
  summary_.detached = left && outcome.busy == 0;
  summary_.modified = CountSurely(&PatchedFunctions::CountModified);
  return left;
}

// What a running process seems to have changed may be another library, which lies there by now: so
// that is looked at again while it can load none.
size_t TraceSession::CountSurely(size_t (PatchedFunctions::*count)() const) const {
  const size_t found = (*functions_.*count)();
  if (found == 0) return 0;
  const auto held = Holding::Of(*target_);
  if (!held || !functions_->ReadModules()) return found;
  return (*functions_.*count)();
}

size_t TraceSession::CountForeign() const { return CountSurely(&PatchedFunctions::CountForeign); }

Status TraceSession::Collect(UntoldCalls open) {
  if (collector_ == nullptr) return {};
  Status stopped = collector_->Stop();
  Status taken = collector_->TakeOwned(std::move(open), /*all=*/summary_.detached);
  return stopped ? std::move(taken) : std::move(stopped);
}

Result<TraceSummary> TraceSession::Finish(TraceEnd end) {
  finished_ = true;
  summary_.end = end;
  summary_.pid = target_->pid();
  summary_.directory = output_->directory();
  UntoldCalls open;
  if (end != TraceEnd::kProgramEnded && end != TraceEnd::kExecuted) {
    const auto lost = target_->ReadObject<std::array<uint64_t, tracedata::kLossReasons>>(
        agent_->place().control() + offsetof(AgentControl, lost));
    if (lost) {
      for (const uint64_t calls : *lost) summary_.lost_without_slot += calls;
    }
    if (Status left = Leave(open); !left) {
      // It may end while it is being left.
      if (left.error().kind != ErrorKind::kNotFound) return Fail(std::move(left.error()));
      summary_.end = TraceEnd::kProgramEnded;
    }
  }
  LeaveForkedChildren(*target_, *agent_, open);
  if (Status collected = Collect(std::move(open)); summary_.write_error) {
    summary_.write_error = std::move(collected);
  }
  agent_->pool().Drop();
  summary_.sites = functions_->Count();
  if (values_ != nullptr) summary_.without_values = values_->without();
  summary_.collected = collected();
  NoteUnwritten();
  summary_.longest_hold = target_->longest_hold();
  summary_.holds = target_->holds();
  if (child_ != nullptr && summary_.end == TraceEnd::kProgramEnded) {
    summary_.exit_code = child_->Wait(/*block=*/true);
  }
  if (Status written = WriteLastFacts(); !written && summary_.write_error) {
    summary_.write_error = std::move(written);
  }
  summary_.bytes = output_->bytes();
  return std::move(summary_);
}

// Beside what went wrong when the trace was written, how much is lost by it.
void TraceSession::NoteUnwritten() {
  CollectedCounts& collected = summary_.collected;
  if (Status there = output_->StillThere(); !there) {
    collected.unwritten += std::exchange(collected.calls, 0);
    summary_.write_error = std::move(there);
  }
  if (summary_.write_error || collected.unwritten == 0) return;
  Error error = std::move(summary_.write_error.error());
  error.message += fmt::format(" ({} calls)", collected.unwritten);
  summary_.write_error = Fail(std::move(error));
}

Status TraceSession::WriteLastFacts() {
  TRY(output_->Add(RefineClock(clock_)));
  if (const uint64_t calls = summary_.collected.unwritten; calls != 0) {
    TRY(output_->Add(tracedata::TraceLoss{
        .pid = target_->pid(), .reason = "could not be written", .calls = calls}));
  }
  if (summary_.lost_without_slot != 0) {
    TRY(output_->Add(tracedata::TraceLoss{.pid = target_->pid(),
                                          .reason = "more threads than there is room for",
                                          .calls = summary_.lost_without_slot}));
  }
  if (summary_.end == TraceEnd::kProgramEnded) {
    const std::optional<int> status = child_ ? child_->wait_status() : std::nullopt;
    TRY(output_->Add(
        tracedata::ProcessExit{.ticks = NowTicks(),
                               .pid = target_->pid(),
                               .status = status.value_or(tracedata::ProcessExit::kUnknownStatus)}));
  }
  return output_->Flush();
}

}  // namespace stackreel::tracer
