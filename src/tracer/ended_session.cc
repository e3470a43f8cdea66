// What a session does when it ends: leaves the program, and completes the trace.
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "tracedata/loss_reason.h"
#include "tracer/forked_children.h"
#include "tracer/trace_clock.h"
#include "tracer/trace_session.h"

namespace stackreel::tracer {

namespace {

using std::chrono::steady_clock;
using namespace std::chrono_literals;

// How long threads in the agent are waited for when a program is left, and how long it runs between
// two tries: at first at least, and so many times as long as it was held for the last; twice as
// long each time.
constexpr auto kLeavePatience = 3000ms;
constexpr auto kLeavePause = 2ms;
constexpr int kLeavePauseForHold = 4;

void Add(const tracedata::LostCalls& more, tracedata::LostCalls& lost) {
  for (size_t reason = 0; reason < lost.size(); ++reason) lost[reason] += more[reason];
}

}  // namespace

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
  // there are many threads for few cores, one that is in the agent needs its turn to leave it, and
  // after each hold the same ones may be the last to have theirs.
  const auto deadline = steady_clock::now() + kLeavePatience;
  std::chrono::microseconds pause = kLeavePause;
  while (true) {
    left = LeaveOnce(open, outcome);
    const auto now = steady_clock::now();
    if (!left || outcome.busy == 0 || now > deadline) break;
    pause = std::max(pause, kLeavePauseForHold * target_->last_hold());
    std::this_thread::sleep_for(std::min<steady_clock::duration>(pause, deadline - now));
    pause *= 2;
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
  FinishAllFollowed();
  summary_.end = end;
  summary_.pid = target_->pid();
  summary_.follows = options_.follow;
  summary_.directory = output_->directory();
  // Before return addresses are put back, which it may want to know.
  if (options_.companion != nullptr) options_.companion->End(/*discard=*/false);
  UntoldCalls open;
  if (end != TraceEnd::kProgramEnded && end != TraceEnd::kExecuted) {
    if (Status left = Leave(open); !left) {
      // It may end while it is being left.
      if (left.error().kind != ErrorKind::kNotFound) return Fail(std::move(left.error()));
      summary_.end = TraceEnd::kProgramEnded;
    }
  }
  // It is not, where the program that was executed could not be traced.
  const bool has_agent = agent_ != nullptr;
  if (has_agent) LeaveForkedChildren(*target_, *agent_, open);
  if (Status collected = Collect(std::move(open)); summary_.write_error) {
    summary_.write_error = std::move(collected);
  }
  if (has_agent) DropPool();
  summary_.sites = functions_->Count();
  if (values_ != nullptr) summary_.without_values = values_->without();
  summary_.unmatched = Unmatched();
  summary_.anything_patched = anything_patched_;
  summary_.collected = collected();
  summary_.lost = lost();
  NoteUnwritten();
  NoteHolds(*target_);
  if (child_ != nullptr && summary_.end == TraceEnd::kProgramEnded) {
    summary_.exit_code = child_->Wait(/*block=*/true);
  }
  if (Status written = WriteLastFacts(); !written && summary_.write_error) {
    summary_.write_error = std::move(written);
  }
  summary_.bytes = output_->bytes();
  return std::move(summary_);
}

tracedata::LostCalls TraceSession::OwnLost() const {
  tracedata::LostCalls lost = lost_before_;
  if (collector_ != nullptr) Add(agent_->pool().Lost(), lost);
  return lost;
}

tracedata::LostCalls TraceSession::lost() const {
  tracedata::LostCalls lost = OwnLost();
  for (const auto& session : followed_) Add(session->OwnLost(), lost);
  return lost;
}

CollectedCounts TraceSession::collected() const {
  CollectedCounts counts = collected_before_;
  if (collector_ != nullptr) counts += collector_->counts();
  for (const auto& session : followed_) counts += session->collected();
  return counts;
}

// Gives the memory back, when it is known what stood in it.
void TraceSession::DropPool() {
  first_->summary_.executed_children += agent_->pool().header().executed_children;
  agent_->pool().Drop();
}

void TraceSession::NoteHolds(const Target& target) {
  TraceSummary& summary = first_->summary_;
  summary.longest_hold = std::max(summary.longest_hold, target.longest_hold());
  summary.holds += target.holds();
}

void TraceSession::WakeFor(int fd) const {
  epoll_event event = {.events = EPOLLIN, .data = {}};
  (void)epoll_ctl(wake_.get(), EPOLL_CTL_ADD, fd, &event);
}

std::vector<std::string> TraceSession::Unmatched() {
  NoteMatched();
  std::vector<std::string> unmatched;
  for (const PatternChoice& choice : options_.patterns) {
    const std::string& text = choice.pattern.text();
    if (choice.choice == Choice::kPatch && !matched_.contains(text)) unmatched.push_back(text);
  }
  return unmatched;
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
  for (uint32_t reason = 0; reason < tracedata::kLossReasons; ++reason) {
    const uint64_t told = summary_.collected.lost[reason];
    if (summary_.lost[reason] <= told) continue;
    TRY(output_->Add(tracedata::TraceLoss{.pid = target_->pid(),
                                          .reason = std::string(tracedata::LossReasonText(reason)),
                                          .calls = summary_.lost[reason] - told}));
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
