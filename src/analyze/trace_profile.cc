#include "analyze/trace_profile.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/plural.h"
#include "tracedata/loss_reason.h"

namespace stackreel::analyze {

using profile::StackId;
using tracedata::EventKind;

namespace {

class ProfileMaker {
 public:
  ProfileMaker(TraceCalls& calls, profile::Profile& profile) : calls_(calls), profile_(profile) {}

  void Add(const CallStep& step) {
    if (step.kind == EventKind::kLost) return;
    if (step.kind == EventKind::kEntry) {
      const StackId caller = open_.empty() ? profile::kEmptyStack : open_.back();
      const StackId stack = profile_.Push(caller, FrameOf(step.function));
      if (stack >= sums_.size()) sums_.resize(stack + size_t{1});
      if (sums_[stack].calls == 0) touched_.push_back(stack);
      ++sums_[stack].calls;
      open_.push_back(stack);
      return;
    }
    sums_[open_.back()].self += step.duration - step.inner;
    open_.pop_back();
  }

  void FinishThread(const tracedata::TraceThread& thread) {
    for (const StackId stack : touched_) {
      Sum& sum = sums_[stack];
      profile_.AddSample({.stack = stack,
                          .weight = calls_.scale().Nanoseconds(sum.self),
                          .count = sum.calls,
                          .pid = thread.pid,
                          .tid = thread.tid,
                          .comm = profile_.Intern(thread.comm)});
      profile_.facts.samples += sum.calls;
      sum = {};
    }
    touched_.clear();
    open_.clear();
  }

 private:
  struct Sum {
    uint64_t self = 0;  // ticks
    uint64_t calls = 0;
  };

  profile::FrameId FrameOf(uint32_t function) {
    if (function >= frames_.size()) frames_.resize(function + size_t{1}, profile::kNoFrame);
    if (frames_[function] == profile::kNoFrame) {
      profile::Frame frame;
      frame.function = profile_.Intern(calls_.names().NameOf(function));
      frame.module = profile_.Intern(calls_.names().ModuleNameOf(function));
      frames_[function] = profile_.AddFrame(frame);
    }
    return frames_[function];
  }

  TraceCalls& calls_;
  profile::Profile& profile_;
  std::vector<profile::FrameId> frames_;  // by function
  std::vector<Sum> sums_;                 // of this thread, by stack
  std::vector<StackId> touched_;          // those that are not zero
  std::vector<StackId> open_;
};

}  // namespace

Result<profile::Profile> MakeTraceProfile(TraceCalls& calls) {
  profile::Profile profile;
  profile.facts.events = {"time"};
  ProfileMaker maker(calls, profile);
  for (const size_t row : calls.threads()) {
    {
      ThreadSteps steps(calls, row);
      CallStep step;
      while (true) {
        TRY_ASSIGN(const bool more, steps.Next(step));
        if (!more) break;
        maker.Add(step);
      }
    }
    maker.FinishThread(calls.source().tables().threads[row]);
  }
  profile.facts.lost = calls.counters.Get("trace.lost_calls");
  profile.facts.damage = calls.source().damage();
  profile.facts.counters.Merge(calls.source().counters());
  profile.facts.counters.Merge(calls.counters);
  return profile;
}

Result<tracedata::CallLosses> CountLosses(tracedata::TraceSource& source) {
  tracedata::CallLosses losses;
  losses.AddFacts(source.tables());
  for (size_t row = 0; row < source.tables().threads.size(); ++row) {
    const std::unique_ptr<tracedata::ThreadCalls> calls = source.CallsOf(row);
    while (true) {
      TRY_ASSIGN(const tracedata::EventBatch batch, calls->Next());
      if (batch.events.empty()) break;
      for (const tracedata::OrderedEvent& event : batch.events) losses.Add(event);
    }
  }
  return losses;
}

std::string LossText(const tracedata::TraceSource& source, uint64_t calls, uint64_t places) {
  std::string text;
  if (calls != 0) text += PluralWere(calls, "call") + " not recorded\n";
  if (places != 0) {
    text +=
        fmt::format("in {} it is not known how many calls are missing\n", Plural(places, "place"));
  }
  for (const tracedata::TraceLoss& loss : source.tables().losses) {
    if (tracedata::LossReasonOf(loss.reason)) continue;  // among the calls above
    text += fmt::format("process {}: {}", loss.pid, loss.reason);
    text += loss.calls == 0 ? "\n" : ": " + Plural(loss.calls, "call") + "\n";
  }
  if (!source.damage().empty()) text += source.damage() + "\n";
  return text;
}

}  // namespace stackreel::analyze
