// What a session does when its program asks: about libraries that were loaded, and about another
// program that it is about to execute.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <future>
#include <system_error>
#include <utility>

#include "os/proc.h"
#include "tracer/forked_children.h"
#include "tracer/trace_clock.h"
#include "tracer/trace_session.h"

namespace stackreel::tracer {

namespace {

using tracedata::AgentControl;
using namespace std::chrono_literals;

}  // namespace

void TraceSession::AnswerProgram() {
  uint64_t count = 0;
  (void)!read(collector_->asked_fd(), &count, sizeof(count));
  tracedata::PoolHeader& pool = agent_->pool().header();
  const uint32_t asked = pool.asked;
  if (asked == pool.answered && functions_->HearsOfLibraries()) return;
  pool.seen = asked;
  if (!has_ended_) SeeToProgram();
  const auto follower = options_.follow ? BeginToFollow() : nullptr;
  agent_->pool().Answer(asked);
  if (follower != nullptr) FollowExec(*follower);
}

void TraceSession::SeeToProgram() {
  NoteUntold();
  if (options_.companion != nullptr) options_.companion->LookNow();
  // What fails now is tried again at the next request; the program waits no longer than for one
  // try.
  if (const auto followed = functions_->FollowLibraries(); followed && followed->matched != 0) {
    first_->summary_.followed.matched += followed->matched;
    first_->summary_.followed.patched += followed->patched;
    first_->NotePatched(*followed);
    (void)first_->output_->Flush();
  }
  WatchTrapSignal();
  WatchSeccomp();
}

// The program is about to block the signal of traps, to take it for itself, or to limit what may be
// called behind their handler: before it goes on there are none.
void TraceSession::WatchTrapSignal() {
  const Avma at = agent_->place().control() + offsetof(AgentControl, traps_unsafe);
  const auto unsafe = options_.traps ? target_->ReadObject<uint32_t>(at) : Result<uint32_t>(0);
  if (!unsafe || *unsafe == 0) return;
  const auto limit = target_->ReadObject<tracedata::OwnCalls>(agent_->place().control() +
                                                              offsetof(AgentControl, own_calls));
  const bool is_limited = limit && *limit != tracedata::OwnCalls::kAny;
  (void)functions_->GiveUpTraps(std::string(
      is_limited ? kCallsLimited : "the program blocks the signal of traps, or handles it"));
  (void)target_->WriteObject<uint32_t>(at, 0);
}

// By its id as it sees itself.
Result<std::unique_ptr<os::ExecFollower>> TraceSession::FollowerOf(uint32_t pid, uint32_t own_tid) {
  OwnIds ids;
  for (const uint32_t tid : os::ListThreads(pid)) {
    if (ids.Of(pid, tid) == own_tid) return os::ExecFollower::Begin(pid, tid);
  }
  return Fail(ErrorKind::kNotFound, fmt::format("process {} has no thread {}", pid, own_tid));
}

// Takes hold of the threads that are about to execute another program. The one of this process, if
// there is one, is given; what becomes of children shows later.
std::unique_ptr<os::ExecFollower> TraceSession::BeginToFollow() {
  std::unique_ptr<os::ExecFollower> own;
  const uint32_t own_pid = OwnIds().Of(target_->pid(), target_->pid());
  for (const Pool::Executing& executing : agent_->pool().TakeExecuting()) {
    if (has_ended_ || executing.pid != own_pid) {
      BeginToFollowChild(executing);
      continue;
    }
    auto follower = FollowerOf(target_->pid(), executing.tid);
    if (follower) {
      own = std::move(*follower);
    } else {
      first_->summary_.not_followed = std::move(follower.error());
    }
  }
  return own;
}

void TraceSession::FollowExec(os::ExecFollower& follower) {
  auto awaited = std::async(std::launch::async, [&follower] { return follower.Await(); });
  // Its children may ask meanwhile, and its other threads until it is executed.
  while (awaited.wait_for(1ms) != std::future_status::ready) {
    const uint32_t asked = agent_->pool().header().asked;
    if (asked == agent_->pool().header().answered) continue;
    (void)BeginToFollow();
    agent_->pool().Answer(asked);
  }
  const auto executed = awaited.get();
  if (executed && !*executed) return;  // it could not be executed, and the program goes on
  const bool has_children = !FindForkedChildren(target_->pid(), agent_->pool().inode()).empty();
  const std::vector<PatternChoice> patterns(functions_->in_force().begin(),
                                            functions_->in_force().end());
  Status closed = CloseProgram(has_children);
  TraceSummary& summary = first_->summary_;
  if (!closed && summary.write_error) summary.write_error = std::move(closed);
  const auto held = executed ? follower.Hold() : Fail(executed.error());
  Status followed =
      held ? OpenProgram(target_->pid(), *held, patterns, has_children) : Fail(held.error());
  if (followed) {
    ++summary.executed;
    return;
  }
  given_up_ = true;
  const bool may_have_ended = followed.error().kind == ErrorKind::kNotFound ||
                              followed.error().kind == ErrorKind::kInterrupted;
  if (!IsGone(may_have_ended ? kEndPatience : 0ms)) {
    summary.not_followed = std::move(followed.error());
  }
}

// What was the program is no more; children that it has forked may be, and go on recording.
Status TraceSession::CloseProgram(bool has_children) {
  NoteMatched();
  Status closed;
  if (has_children) {
    collector_->TakeExecuted(OwnIds().Of(target_->pid(), target_->pid()));
  } else {
    closed = collector_->Stop();
    if (Status taken = collector_->TakeOwned({}, /*all=*/false); closed) closed = std::move(taken);
    collected_before_ += collector_->counts();
    lost_before_ = OwnLost();
    DropPool();
    collector_.reset();
    agent_.reset();
  }
  TRY(std::move(closed));
  return NoteExecuted(target_->pid());
}

Status TraceSession::NoteExecuted(uint32_t pid) const {
  std::error_code error;
  const auto path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  return first_->output_->Add(
      tracedata::ProcessExec{.ticks = NowTicks(), .pid = pid, .path = error ? "" : path.string()});
}

// The program that has been executed is held at its entry.
Status TraceSession::OpenProgram(uint32_t pid, const os::HeldEntry& held,
                                 const std::vector<PatternChoice>& patterns, bool has_children) {
  entry_ = held;
  TRY_ASSIGN(auto target, Target::Open(pid));
  const Status stopped = target->Hold();
  // If it cannot be traced it is not to stay there.
  TRY(target->Write(held.at, held.original));
  TRY(stopped);
  auto was = std::exchange(target_, std::move(target));
  if (was != nullptr) NoteHolds(*was);
  if (has_children) KeepForChildren(std::move(was));
  functions_.reset();  // it speaks of the target that it was made for
  was.reset();
  MakeFunctions();
  Status begun = functions_->Check(patterns, /*each_must_match=*/false);
  if (begun) begun = Install();
  if (begun) begun = agent_->pool().Fill();
  if (begun) begun = functions_->Prepare(patterns);
  if (begun) begun = Record(patterns, /*is_first=*/false);
  if (begun) return {};
  UntoldCalls open;
  (void)Leave(open);
  if (target_->held()) (void)target_->LetGo();
  return begun;
}

}  // namespace stackreel::tracer
