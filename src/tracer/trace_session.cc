#include "tracer/trace_session.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>

#include "os/proc.h"
#include "tracer/forked_children.h"
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
// How long a process that has no memory any more takes to end.
constexpr auto kEndPatience = 1000ms;
// The same for a program that is at its very start when it is attached to.
constexpr int kStartTries = 50;
constexpr auto kStartPause = 2ms;

}  // namespace

Result<std::unique_ptr<TraceSession>> TraceSession::Begin(TraceOptions options,
                                                          Executor& executor) {
  std::unique_ptr<TraceSession> session(new TraceSession(std::move(options)));
  Status begun = session->Open(executor);
  if (begun) begun = session->Prepare();
  if (begun) return session;
  // What failed then is only a consequence.
  if (const char* how = session->EndedMeanwhile()) {
    begun = Fail(ErrorKind::kNotFound,
                 fmt::format("process {} {} while it was being prepared for tracing",
                             session->target_->pid(), how));
  }
  if (session->child_ != nullptr) {
    session->child_->Signal(SIGKILL);
    session->child_->Wait(/*block=*/true);
    session->finished_ = true;
  }
  return Fail(std::move(begun.error()));
}

// What can be refused without touching the process.
Status TraceSession::Open(Executor& executor) {
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
  }
  functions_ = std::make_unique<PatchedFunctions>(
      *target_, [this](const tracedata::TraceFact& fact) { return output_->Add(fact); }, numbers_,
      executor);
  if (!options_.values.empty()) {
    values_ = std::make_unique<FunctionValues>(
        options_.values, [this](const tracedata::TraceFact& fact) { return output_->Add(fact); });
    functions_->UseValues(*values_);
  }
  return functions_->Check(options_.patterns);
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
        TRY_ASSIGN(agent_, InstalledAgent::Install(*target_,
                                                   {.chunks = options_.chunks,
                                                    .on_full = options_.on_full,
                                                    .await_libraries = options_.await_libraries}));
        functions_->UseAgent(agent_->place());
        return functions_->Reserve();
      }
    }
    std::this_thread::sleep_for(kStartPause);
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
  if (entry_) TRY(agent_->MapPoolPages(*target_));
  collector_ = std::make_unique<ChunkCollector>(agent_->pool(), *output_, target_->pid());
  collector_->Start();
  if (options_.min_duration_us > 0) {
    const auto ticks = static_cast<uint64_t>(options_.min_duration_us * 1e-6 *
                                             static_cast<double>(clock_.ticks_per_second));
    TRY(target_->WriteObject(agent_->place().control() + offsetof(AgentControl, min_duration),
                             ticks));
  }
  TRY(agent_->SetRecording(*target_, true));
  TRY_ASSIGN(summary_.patched, functions_->Apply(options_.patterns));
  if (summary_.patched.patched == 0 && !summary_.patched.error.empty()) {
    return Fail(ErrorKind::kUnsupported, fmt::format("process {} cannot be patched: {}",
                                                     target_->pid(), summary_.patched.error));
  }
  TRY(output_->Flush());
  WatchSeccomp();
  return entry_ ? target_->LetGo() : Status();
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
  if (!target_->MemoryIsGone()) return std::nullopt;
  // The memory that was opened is the old program's; or it is about to end, and has none any more.
  const auto maps = os::ReadProcMaps(target_->pid());
  if (maps && !maps->empty()) return TraceEnd::kExecuted;
  (void)IsGone(kEndPatience);
  return TraceEnd::kProgramEnded;
}

const char* TraceSession::EndedMeanwhile() {
  const std::optional<TraceEnd> end = target_ == nullptr ? std::nullopt : Ended();
  if (!end) return nullptr;
  return end == TraceEnd::kExecuted ? "executed another program" : "ended";
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
  agent_->pool().Answer(asked);
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
  if (values_ == nullptr || !values_->reads_texts() || summary_.texts_unread) return;
  if (StatusLine(target_->pid(), "Seccomp") != "2") return;
  summary_.texts_unread = true;
  (void)target_->WriteObject(agent_->place().control() + offsetof(AgentControl, no_text_reads),
                             uint32_t{1});
}

Status TraceSession::Tend() {
  AnswerProgram();
  WatchSeccomp();
  if (steady_clock::now() >= next_look_) NoteUntold();
  // What cannot be done now is tried the next time; what states sites are in says it all.
  (void)functions_->Retry();
  return collector_->status();
}

Result<PatchCounts> TraceSession::Apply(std::span<const PatternChoice> patterns) {
  TRY_ASSIGN(PatchCounts counts, functions_->Apply(patterns));
  TRY(output_->Flush());
  return counts;
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
  summary_.modified = functions_->CountModified();
  return left;
}

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
  summary_.write_error = Collect(std::move(open));
  agent_->pool().Drop();
  summary_.sites = functions_->Count();
  if (values_ != nullptr) summary_.without_values = values_->without();
  summary_.collected = collector_->counts();
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

Status TraceSession::WriteLastFacts() {
  TRY(output_->Add(RefineClock(clock_)));
  if (summary_.lost_without_slot != 0) {
    TRY(output_->Add(tracedata::TraceLoss{.pid = target_->pid(),
                                          .reason = "more threads than there is room for",
                                          .calls = summary_.lost_without_slot}));
  }
  if (summary_.end == TraceEnd::kProgramEnded) {
    const int code = summary_.exit_code.value_or(0);
    TRY(output_->Add(
        tracedata::ProcessExit{.ticks = NowTicks(),
                               .pid = target_->pid(),
                               .status = code > 128 ? code - 128 : W_EXITCODE(code, 0)}));
  }
  return output_->Flush();
}

}  // namespace stackreel::tracer
