// What the first session of a trace does about others: of children that have executed another
// program, which has a session of its own.
#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <utility>

#include "os/own_ids.h"
#include "tracer/forked_children.h"
#include "tracer/trace_clock.h"
#include "tracer/trace_session.h"

namespace stackreel::tracer {

namespace {

using namespace std::chrono_literals;

// How far apart looks are whether children of a process that has ended are there still: each goes
// through all processes.
constexpr auto kBetweenLooksAtChildren = 500ms;

// The one that uses this pool and has this id as it sees itself.
Result<uint32_t> FindChild(uint32_t parent, uint64_t pool, uint32_t own_pid) {
  OwnIds ids;
  // As it is where it is in no namespace of its own.
  if (ids.Of(own_pid, own_pid) == own_pid && MapsPool(own_pid, pool)) return own_pid;
  std::vector<uint32_t> found;
  for (const uint32_t pid : FindForkedChildren(parent, pool)) {
    if (ids.Of(pid, pid) == own_pid) found.push_back(pid);
  }
  if (found.size() == 1) return found.front();
  return Fail(
      ErrorKind::kNotFound,
      fmt::format("there {} process {}", found.empty() ? "is no" : "is more than one", own_pid));
}

}  // namespace

void TraceSession::BeginToFollowChild(const Pool::Executing& executing) {
  TraceSession& first = *first_;
  const auto pid = FindChild(target_->pid(), agent_->pool().inode(), executing.pid);
  auto follower = pid ? FollowerOf(*pid, executing.tid) : Fail(pid.error());
  if (!follower) {
    ++first.summary_.executed_children;
    first.summary_.child_error = std::move(follower.error());
    return;
  }
  const auto in_force = functions_->in_force();
  FollowedChild child{
      .pid = *pid,
      .pidfd = os::Fd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(*pid), 0))),
      .own_pid = executing.pid,
      .parent = agent_.get(),
      .patterns = {in_force.begin(), in_force.end()},
      .follower = std::move(*follower),
      .executed = {}};
  child.executed =
      std::async(std::launch::async, [follower = child.follower.get(), came = first.came_.get()] {
        auto executed = follower->Await();
        const uint64_t one = 1;
        (void)!write(came, &one, sizeof(one));
        return executed;
      });
  first.following_.push_back(std::move(child));
}

// It is held at the entry of what it has executed, or could execute nothing, or has ended.
void TraceSession::OpenFollowed(FollowedChild& child) {
  const auto executed = child.executed.get();
  if (executed && !*executed) return;
  Status opened = executed ? Status() : Fail(executed.error());
  std::unique_ptr<TraceSession> session;
  if (opened) {
    for (TraceSession* parent : AllSessions()) {
      // What it had recorded up to now comes first.
      if (parent->agent_.get() == child.parent && parent->collector_ != nullptr) {
        parent->collector_->TakeExecuted(child.own_pid);
      }
    }
    opened = NoteExecuted(child.pid);
  }
  if (opened) {
    session.reset(new TraceSession(*this));
    session->pidfd_ = std::move(child.pidfd);
    const auto held = child.follower->Hold();
    opened = held ? session->OpenProgram(child.pid, *held, child.patterns, /*has_children=*/false)
                  : Fail(held.error());
  }
  if (opened) {
    ++summary_.executed;
    followed_.push_back(std::move(session));
    return;
  }
  if (session != nullptr) {
    (void)session->Collect({});
    session->finished_ = true;
  }
  const bool may_have_ended =
      opened.error().kind == ErrorKind::kNotFound || opened.error().kind == ErrorKind::kInterrupted;
  const os::Fd& pidfd = session != nullptr ? session->pidfd_ : child.pidfd;
  pollfd ends = {.fd = pidfd.get(), .events = POLLIN, .revents = 0};
  const int patience = may_have_ended ? static_cast<int>(kEndPatience.count()) : 0;
  if (pidfd.valid() && poll(&ends, 1, patience) > 0) return;
  ++summary_.executed_children;
  summary_.child_error = std::move(opened.error());
}

// The program of `target` was executed over, and has forked children: they are seen to by a session
// of their own.
void TraceSession::KeepForChildren(std::unique_ptr<Target> target) {
  std::unique_ptr<TraceSession> session(new TraceSession(*first_));
  session->target_ = std::move(target);
  session->functions_ = std::move(functions_);
  session->agent_ = std::move(agent_);
  session->collector_ = std::move(collector_);
  session->has_ended_ = true;
  first_->followed_.push_back(std::move(session));
}

std::vector<TraceSession*> TraceSession::AllSessions() {
  std::vector<TraceSession*> all = {this};
  for (const auto& session : followed_) all.push_back(session.get());
  return all;
}

void TraceSession::TendFollowed() {
  uint64_t count = 0;
  (void)!read(came_.get(), &count, sizeof(count));
  std::vector<FollowedChild> ready;
  for (size_t i = 0; i < following_.size();) {
    if (following_[i].executed.wait_for(0ms) == std::future_status::ready) {
      ready.push_back(std::move(following_[i]));
      following_.erase(following_.begin() + static_cast<ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  for (FollowedChild& child : ready) OpenFollowed(child);
  // Others may come meanwhile.
  for (size_t i = 0; i < followed_.size(); ++i) {
    TraceSession& session = *followed_[i];
    if (session.given_up_) continue;
    if (const auto end = session.has_ended_ ? std::nullopt : session.Ended(); end) {
      session.has_ended_ = true;
      // By a system call of its own, that no agent saw.
      if (*end == TraceEnd::kExecuted) ++summary_.executed_children;
    }
    if (session.has_ended_) {
      session.AnswerProgram();
    } else if (Status tended = session.TendProgram(); !tended && summary_.write_error) {
      summary_.write_error = std::move(tended);
    }
  }
  for (size_t i = 0; i < followed_.size();) {
    if (!followed_[i]->IsDone()) {
      ++i;
      continue;
    }
    if (followed_[i]->given_up_) ++summary_.executed_children;
    FinishFollowed(*followed_[i]);
    followed_.erase(followed_.begin() + static_cast<ptrdiff_t>(i));
  }
}

// Whether nobody records into its pool any more.
bool TraceSession::IsDone() {
  if (given_up_) return true;
  if (!has_ended_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_at_children_) return false;
  next_look_at_children_ = now + kBetweenLooksAtChildren;
  return FindForkedChildren(target_->pid(), agent_->pool().inode()).empty();
}

void TraceSession::FinishFollowed(TraceSession& session) {
  session.finished_ = true;
  UntoldCalls open;
  bool has_ended = session.has_ended_ || session.given_up_ || session.Ended();
  if (!has_ended) {
    const Status left = session.Leave(open);
    has_ended = !left && left.error().kind == ErrorKind::kNotFound;
    const bool is_whole = session.summary_.detached && session.summary_.modified == 0;
    if (!has_ended && !is_whole) summary_.not_left.push_back(session.pid());
    summary_.put_back += session.summary_.put_back;
  }
  if (session.agent_ != nullptr) LeaveForkedChildren(*session.target_, *session.agent_, open);
  if (Status collected = session.Collect(std::move(open)); !collected && summary_.write_error) {
    summary_.write_error = std::move(collected);
  }
  if (session.functions_ != nullptr) session.NoteMatched();
  session.NoteHolds(*session.target_);
  collected_before_ += session.collected();
  const tracedata::LostCalls lost = session.lost();
  for (size_t reason = 0; reason < lost.size(); ++reason) lost_before_[reason] += lost[reason];
  if (session.agent_ != nullptr) session.DropPool();
  session.collector_.reset();
  session.lost_before_ = {};
  session.collected_before_ = {};
}

void TraceSession::FinishAllFollowed() {
  GiveUpFollowing();
  for (const auto& session : followed_) FinishFollowed(*session);
  followed_.clear();
}

// Who is about to be followed goes on without.
void TraceSession::GiveUpFollowing() {
  for (const FollowedChild& child : following_) child.follower->GiveUp();
  for (FollowedChild& child : following_) {
    const auto executed = child.executed.get();
    if (!executed || *executed) ++summary_.executed_children;
  }
  following_.clear();
}

// Whether each pattern matches something in one of the programs.
Status TraceSession::CheckAnywhere(std::span<const PatternChoice> patterns) {
  for (size_t i = 0; i < patterns.size(); ++i) {
    const auto one = patterns.subspan(i, 1);
    Status here = functions_->Check(one);
    const auto matches = [&](const std::unique_ptr<TraceSession>& session) {
      return !session->has_ended_ && session->functions_->Check(one).has_value();
    };
    if (!here && std::ranges::none_of(followed_, matches)) return here;
  }
  return {};
}

}  // namespace stackreel::tracer
