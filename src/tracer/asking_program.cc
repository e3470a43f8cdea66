// What a session does when its program asks: about libraries that were loaded, and about another
// program that it is about to execute.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "os/proc.h"
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
  NoteUntold();
  if (options_.companion != nullptr) options_.companion->LookNow();
  // What fails now is tried again at the next request; the program waits no longer than for one
  // try.
  if (const auto followed = functions_->FollowLibraries(); followed && followed->matched != 0) {
    summary_.followed.matched += followed->matched;
    summary_.followed.patched += followed->patched;
    anything_patched_ = anything_patched_ || followed->patched + followed->deferred != 0;
    (void)output_->Flush();
  }
  WatchTrapSignal();
  WatchSeccomp();
  const auto follower = options_.follow ? BeginToFollow() : nullptr;
  agent_->pool().Answer(asked);
  if (follower != nullptr) FollowExec(*follower);
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
  NoteMatched();
  Status stopped = collector_->Stop();
  Status taken = collector_->TakeOwned({}, /*all=*/false);
  summary_.executed_children += agent_->pool().header().executed_children;
  agent_->pool().Drop();
  collected_before_ += collector_->counts();
  lost_before_ = lost();
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

}  // namespace stackreel::tracer
