#include "tracer/trace_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "os/proc.h"
#include "tracer/trace_clock.h"

namespace stackreel::tracer {

namespace {

using std::chrono::steady_clock;
using tracedata::AgentControl;
using tracedata::OwnCalls;
using namespace std::chrono_literals;

// How far apart looks at open calls are at least, and how much longer than a look takes.
constexpr auto kBetweenLooks = 50ms;
constexpr int kLookShare = 20;
// How often it is looked whether the program lets traps be traps; it is held for that.
constexpr auto kBetweenWatchingTraps = 1000ms;
// How often it is tried to put the agent into a program that is at its very start when it is
// attached to, and how long that runs between two tries.
constexpr int kStartTries = 50;
constexpr auto kStartPause = 2ms;
// How often a process is attached to that becomes another program meanwhile.
constexpr int kBeginTries = 20;

void Add(const PatchCounts& more, PatchCounts& counts) {
  counts.matched += more.matched;
  counts.patched += more.patched;
  counts.unpatched += more.unpatched;
  counts.deferred += more.deferred;
  for (const auto& [reason, count] : more.refused) {
    const auto known = std::ranges::find(
        counts.refused, reason, [](const auto& one) -> const std::string& { return one.first; });
    if (known == counts.refused.end()) {
      counts.refused.emplace_back(reason, count);
    } else {
      known->second += count;
    }
  }
  if (counts.error.empty()) counts.error = more.error;
}

}  // namespace

Result<std::unique_ptr<TraceSession>> TraceSession::Begin(TraceOptions options,
                                                          Executor& executor) {
  for (int i = 1; true; ++i) {
    std::unique_ptr<TraceSession> session(new TraceSession(std::move(options)));
    session->executor_ = &executor;
    session->wake_ = os::Fd(epoll_create1(EPOLL_CLOEXEC));
    session->came_ = os::Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    session->WakeFor(session->came_.get());
    session->hold_throughout_ = i > 1;
    Status begun = session->Open();
    if (begun) begun = session->Prepare();
    if (begun) {
      session->output_->Keep();
      return session;
    }
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
  if (options_.companion != nullptr) options_.companion->End(/*discard=*/true);
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
  TRY(target_->filters().RefuseStrict());
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
  // Of programs that are followed, a later one may have what this one has not.
  if (!options_.follow) TRY(functions_->CheckFilters(filters));
  return functions_->Check(options_.patterns, /*each_must_match=*/!options_.follow);
}

void TraceSession::MakeFunctions() {
  const auto facts = [first = first_](const tracedata::TraceFact& fact) {
    return first->output_->Add(fact);
  };
  functions_ = std::make_unique<PatchedFunctions>(*target_, facts, first_->numbers_, *executor_,
                                                  options_.traps);
  if (options_.values.empty()) return;
  // One for all programs: its enumerations' numbers are the trace's.
  std::unique_ptr<FunctionValues>& values = first_->values_;
  if (values == nullptr) values = std::make_unique<FunctionValues>(options_.values, facts);
  functions_->UseValues(*values);
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
        if (options_.force) target_->filters().TrustUnseen();
        TRY_ASSIGN(const auto own_calls, target_->filters().LeftToAgent(target_->threads()));
        TRY_ASSIGN(agent_,
                   InstalledAgent::Install(*target_, {.chunks = options_.chunks,
                                                      .on_full = options_.on_full,
                                                      .await_libraries = options_.await_libraries,
                                                      .follow = options_.follow,
                                                      .own_calls = own_calls}));
        seccomp_ = ReadSeccompStatus(target_->pid(), target_->pid());
        if (seccomp_.mode != SeccompStatus::Mode::kNone) TRY(ReadNoTexts());
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
  if (options_.companion != nullptr) {
    TRY(options_.companion->Begin(target_->pid(), output_->directory()));
  }
  TRY(WriteFirstFacts());
  // Not before nobody else is known to trace it: the path of the socket is the same.
  control_ = ControlServer::Listen(target_->pid());
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
  collector_ = std::make_unique<ChunkCollector>(agent_->pool(), *first_->output_, target_->pid());
  first_->WakeFor(collector_->asked_fd());
  collector_->Start();
  TRY(agent_->SetRecording(*target_, true));
  if (!options_.filters.empty()) {
    const bool must_match = is_first && !options_.follow;
    TRY_ASSIGN(PatchCounts acting, PutFilters(options_.filters, must_match));
    if (is_first) summary_.acting = std::move(acting);
  }
  TRY_ASSIGN(PatchCounts patched, is_first && !options_.follow ? functions_->Apply(patterns)
                                                               : functions_->TakeOver(patterns));
  first_->NotePatched(patched);
  if (patched.patched == 0 && !patched.error.empty()) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("process {} cannot be patched: {}", target_->pid(), patched.error));
  }
  if (is_first) {
    TRY(RefuseIfNothing(patched));
    summary_.patched = std::move(patched);
  } else {
    first_->summary_.followed.patched += patched.patched;
  }
  TRY(first_->output_->Flush());
  WatchSeccomp();
  return entry_ || hold_throughout_ ? target_->LetGo() : Status();
}

Status TraceSession::WriteFirstFacts() {
  TRY(output_->Add(clock_));
  return output_->Add(DescribeHost(target_->pid()));
}

TraceSession::~TraceSession() {
  GiveUpFollowing();
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

// What a program that is killed has open is known as of the last look.
void TraceSession::NoteUntold() {
  const auto before = steady_clock::now();
  (void)collector_->NoteUntold([this] { return ReadUntoldCalls(*target_, agent_->place()); });
  const auto after = steady_clock::now();
  next_look_ =
      after + std::max<steady_clock::duration>(kBetweenLooks, kLookShare * (after - before));
}

// Where a filter looks at system calls, one that reads a text might end the program.
Status TraceSession::ReadNoTexts() {
  return target_->WriteObject<uint32_t>(
      agent_->place().control() + offsetof(AgentControl, no_text_reads), 1);
}

// What the program has set up by a system call of its own, not the C library's, the agent has not
// seen coming.
void TraceSession::WatchSeccomp() {
  const SeccompStatus now = ReadSeccompStatus(target_->pid(), target_->pid());
  if (now != seccomp_ && now.mode != SeccompStatus::Mode::kNone && LimitOwnCalls(now)) {
    seccomp_ = now;
  }
  const FunctionValues* values = first_->values_.get();
  TraceSummary& summary = first_->summary_;
  if (values == nullptr || !values->reads_texts() || summary.texts_unread) return;
  const auto no_texts = target_->ReadObject<uint32_t>(agent_->place().control() +
                                                      offsetof(AgentControl, no_text_reads));
  summary.texts_unread = no_texts && *no_texts != 0;
}

Status TraceSession::LimitOwnCalls(const SeccompStatus& status) {
  const bool is_strict = status.mode == SeccompStatus::Mode::kStrict;
  const OwnCalls limit = is_strict ? OwnCalls::kNone : OwnCalls::kFew;
  const Avma at = agent_->place().control() + offsetof(AgentControl, own_calls);
  // The agent sets it, too, and it only rises.
  const auto known = target_->ReadObject<OwnCalls>(at);
  if (known && *known >= limit) return {};
  TRY_ASSIGN(const Holding held, Holding::Of(*target_));
  TRY_ASSIGN(const OwnCalls left, target_->ReadObject<OwnCalls>(at));
  if (left < limit) {
    // Without system calls and without rdtsc there is no clock: time stands still.
    if (is_strict) {
      const Avma control = agent_->place().control();
      TRY(target_->WriteObject(control + offsetof(AgentControl, last_ticks), NowTicks()));
      TRY(target_->WriteObject(control + offsetof(AgentControl, short_tid_offset),
                               tracedata::kNoTidOffset));
    }
    TRY(target_->WriteObject(at, limit));
  }
  TRY(ReadNoTexts());
  return functions_->GiveUpTraps(std::string(kCallsLimited));
}

// Each try stops all threads, and time-outs of some begin anew. So the next comes when as much time
// has passed again: whatever their length, they end.
void TraceSession::RetryDeferred() {
  const auto now = steady_clock::now();
  if (now < next_try_) return;
  const uint64_t holds = target_->holds();
  // What cannot be done now is tried the next time; what states sites are in says it all.
  (void)functions_->Retry();
  if (target_->holds() == holds) {
    tried_since_ = now;  // nobody is in the way
  } else {
    next_try_ = now + (now - tried_since_);
  }
}

Status TraceSession::Tend() {
  TendFollowed();
  return TendProgram();
}

Status TraceSession::TendProgram() {
  if (given_up_) return {};
  AnswerProgram();
  WatchSeccomp();
  if (!given_up_ && steady_clock::now() >= next_look_) NoteUntold();
  if (given_up_) return {};
  RetryDeferred();
  if (const auto now = std::chrono::steady_clock::now();
      options_.traps && now - traps_watched_ > kBetweenWatchingTraps) {
    traps_watched_ = now;
    (void)functions_->WatchTraps();
  }
  TRY(collector_->status());
  return first_->output_->StillThere();
}

Result<PatchCounts> TraceSession::Apply(std::span<const PatternChoice> patterns) {
  PatchCounts counts;
  if (followed_.empty()) {
    TRY_ASSIGN(counts, functions_->Apply(patterns));
  } else {
    TRY(CheckAnywhere(patterns));
    TRY_ASSIGN(counts, functions_->TakeOver(patterns));
    for (const auto& session : followed_) {
      const auto there =
          session->has_ended_ ? PatchCounts() : session->functions_->TakeOver(patterns);
      if (there) Add(*there, counts);
    }
  }
  NotePatched(counts);
  TRY(output_->Flush());
  return counts;
}

Result<PatchCounts> TraceSession::PutFilters(std::span<const tracedata::FilterOption> filters,
                                             bool each_must_match) {
  TRY_ASSIGN(CallFilters parsed, CallFilters::Parse(filters));
  return functions_->SetFilters(std::move(parsed), first_->clock_.ticks_per_second,
                                each_must_match);
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
  const bool must_match = !only_switches && followed_.empty();
  TRY_ASSIGN(PatchCounts counts, PutFilters(all, must_match));
  for (const auto& session : followed_) {
    session->options_.filters = all;
    if (!session->has_ended_) (void)session->PutFilters(all, /*each_must_match=*/false);
  }
  options_.filters = std::move(all);
  TRY(output_->Flush());
  return counts;
}

bool TraceSession::IsTracing() const {
  const auto off = target_->ReadObject<uint32_t>(agent_->place().control() +
                                                 offsetof(AgentControl, tracing_off));
  return !off || *off == 0;
}

}  // namespace stackreel::tracer
