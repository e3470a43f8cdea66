#include "analyze/trace_calls.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "analyze/function_match.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbol_version.h"
#include "tracedata/loss_reason.h"

namespace stackreel::analyze {

using tracedata::EventKind;
using tracedata::OrderedEvent;
using Wide = unsigned __int128;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;
// How many open calls an exit is looked for in. More than any agent has open.
constexpr size_t kMaxSearched = 4096;

}  // namespace

TickScale::TickScale(const tracedata::TraceClock& clock) : clock_(clock) {
  shift_ = 60;
  const auto factor = [&] {  // rounded up, so that whole nanoseconds stay whole
    return ((Wide{kSecond} << shift_) + clock_.ticks_per_second - 1) / clock_.ticks_per_second;
  };
  while (shift_ > 0 && factor() >= Wide{1} << 63) --shift_;
  factor_ = static_cast<uint64_t>(factor());
}

uint64_t TickScale::Time(uint64_t ticks) const {
  const uint64_t origin = clock_.origin_nanoseconds;
  if (ticks >= clock_.origin_ticks) return origin + Nanoseconds(ticks - clock_.origin_ticks);
  const uint64_t before = Nanoseconds(clock_.origin_ticks - ticks);
  return before > origin ? 0 : origin - before;
}

uint64_t TickScale::Ticks(uint64_t nanoseconds) const {
  const Wide ticks = (Wide{nanoseconds} * clock_.ticks_per_second + kSecond - 1) / kSecond;
  return ticks > UINT64_MAX ? UINT64_MAX : static_cast<uint64_t>(ticks);
}

FunctionNames::FunctionNames(const tracedata::TraceSource& source, const CallSelection& selection)
    : source_(source), selection_(selection) {}

void FunctionNames::MakeName(uint32_t function) {
  if (function >= names_.size()) names_.resize(source_.tables().functions.size());
  names_[function] = std::make_unique<const std::string>(
      symbolize::Demangle(symbolize::WithoutVersion(At(function).name)));
}

void FunctionNames::AddMarks(uint32_t function) {
  while (marks_.size() <= function) {
    const tracedata::TraceFunction& next = At(static_cast<uint32_t>(marks_.size()));
    const auto mark = [&](const std::vector<std::string>& patterns, uint8_t bit) {
      const bool any = std::ranges::any_of(patterns, [&](const std::string& pattern) {
        return MatchesFunction(source_, next, pattern);
      });
      return any ? bit : uint8_t{0};
    };
    marks_.push_back(mark(selection_.functions, kWanted) | mark(selection_.without, kUnwanted) |
                     mark(selection_.callers, kCalled));
  }
}

std::string_view FunctionNames::ModuleNameOf(uint32_t function) const {
  const tracedata::TraceModule* module = source_.ModuleOf(At(function));
  if (module == nullptr) return "";
  const std::string_view path = module->path;
  return path.substr(path.rfind('/') + 1);
}

TraceCalls::TraceCalls(tracedata::TraceSource& source, const CallSelection& selection)
    : source_(source),
      selection_(selection),
      names_(source, selection),
      scale_(source.tables().clock) {
  std::vector<std::pair<uint64_t, size_t>> starts;
  for (size_t row = 0; row < source.tables().threads.size(); ++row) {
    const uint64_t ticks = source.CallsOf(row)->NextTicks();
    if (ticks != UINT64_MAX) starts.emplace_back(ticks, row);
  }
  std::ranges::sort(starts);
  if (!starts.empty()) first_ticks_ = starts.front().first;
  for (const tracedata::TraceLoss& loss : source.tables().losses) {
    if (tracedata::LossReasonOf(loss.reason)) counters.Add("trace.lost_calls", loss.calls);
  }
  for (const auto& [ticks, row] : starts) {
    const bool wanted =
        selection.tids.empty() ||
        std::ranges::find(selection.tids, source.tables().threads[row].tid) != selection.tids.end();
    if (wanted) threads_.push_back(row);
  }
}

ThreadSteps::ThreadSteps(TraceCalls& calls, size_t thread_row)
    : calls_(calls),
      names_(calls.names()),
      thread_row_(thread_row),
      events_(calls.source().CallsOf(thread_row)) {
  const CallSelection& selection = calls.selection();
  if (selection.time_start != 0) {
    from_ = calls.first_ticks() + calls.scale().Ticks(selection.time_start);
  }
  if (selection.time_end != UINT64_MAX) {
    to_ = calls.first_ticks() + calls.scale().Ticks(selection.time_end);
  }
  named_ = !selection.functions.empty() || !selection.without.empty();
  judged_ = selection.min_nanoseconds != 0 || !selection.callers.empty();
}

ThreadSteps::~ThreadSteps() {
  calls_.counters.Add("trace.exit_without_entry", exits_alone_);
  calls_.counters.Add("trace.entry_without_exit", entries_alone_);
  calls_.counters.Add("trace.lost_calls", lost_calls_);
  calls_.counters.Add("trace.lost_ranges", lost_ranges_);
}

uint64_t ThreadSteps::NextTicks() const {
  if (at_ < batch_.events.size()) return batch_.events[at_].ticks;
  const uint64_t next = events_->NextTicks();
  return next == UINT64_MAX && !open_.empty() ? last_ticks_ : next;
}

// Fills keep_.
Status ThreadSteps::Judge() {
  struct Call {
    uint64_t start = 0, entry = 0;
    uint32_t function = 0;
    bool called = false;  // it is one of the selection's callers, or leads to one
  };
  std::vector<Call> open;
  const uint64_t least = calls_.scale().Ticks(calls_.selection().min_nanoseconds);
  const bool any = calls_.selection().callers.empty();
  uint64_t last = 0;
  const auto end = [&](uint64_t ticks) {
    const Call call = open.back();
    open.pop_back();
    keep_[call.entry] = ticks - call.start >= least && (any || call.called);
    if (!open.empty()) open.back().called |= call.called;
  };
  const std::unique_ptr<tracedata::ThreadCalls> events = calls_.source().CallsOf(thread_row_);
  while (true) {
    TRY_ASSIGN(const tracedata::EventBatch batch, events->Next());
    if (batch.events.empty()) break;
    for (const OrderedEvent& event : batch.events) {
      last = event.ticks;
      if (event.kind() == EventKind::kEntry) {
        const bool called =
            !any && (names_.MarksOf(event.function()) & FunctionNames::kCalled) != 0;
        open.push_back({event.ticks, keep_.size(), event.function(), called});
        keep_.push_back(false);
      } else if (event.kind() != EventKind::kLost) {
        const size_t depth = FindOpen(open, event.function());
        while (open.size() > depth) end(event.ticks);
      }
    }
  }
  while (!open.empty()) end(last);
  return {};
}

// How many calls are left open when the innermost one of `function` ends; open.size(): there is
// none.
template <typename Call>
size_t ThreadSteps::FindOpen(const std::vector<Call>& open, uint32_t function) {
  const size_t stop = open.size() > kMaxSearched ? open.size() - kMaxSearched : 0;
  for (size_t i = open.size(); i > stop; --i) {
    if (open[i - 1].function == function) return i - 1;
  }
  return open.size();
}

Result<bool> ThreadSteps::Load() {
  if (judged_ && !keep_is_made_) {
    TRY(Judge());
    keep_is_made_ = true;
  }
  TRY_ASSIGN(batch_, events_->Next());
  at_ = 0;
  return !batch_.events.empty();
}

bool ThreadSteps::Enter(const OrderedEvent& event, CallStep& step) {
  const CallSelection& selection = calls_.selection();
  const uint32_t function = event.function();
  Open call{.start = event.ticks, .function = function};
  bool shown = event.ticks >= from_ && event.ticks <= to_;
  if (named_) {
    call.marks = names_.MarksOf(function);
    wanted_ += (call.marks & FunctionNames::kWanted) != 0 ? 1 : 0;
    unwanted_ += (call.marks & FunctionNames::kUnwanted) != 0 ? 1 : 0;
    shown = shown && unwanted_ == 0 && (wanted_ != 0 || selection.functions.empty());
  }
  shown = shown && depth_ < selection.max_depth && (!judged_ || keep_[entry_]);
  ++entry_;
  call.shown = shown;
  open_.push_back(call);
  if (!shown) return false;
  step.kind = EventKind::kEntry;
  step.unfinished = false;
  step.function = function;
  step.depth = depth_++;
  step.ticks = event.ticks;
  step.values = batch_.ValuesOf(event);
  return true;
}

// Ends the innermost call; whether it is shown.
bool ThreadSteps::Leave(uint64_t ticks, EventKind kind, CallStep& step) {
  const Open call = open_.back();
  open_.pop_back();
  if (named_) {
    wanted_ -= (call.marks & FunctionNames::kWanted) != 0 ? 1 : 0;
    unwanted_ -= (call.marks & FunctionNames::kUnwanted) != 0 ? 1 : 0;
  }
  const uint64_t duration = ticks - call.start;
  if (!open_.empty()) open_.back().inner += call.shown ? duration : call.inner;
  if (!call.shown) return false;
  step.kind = kind;
  step.unfinished = false;
  step.function = call.function;
  step.depth = --depth_;
  step.ticks = ticks;
  step.duration = duration;
  step.inner = std::min(call.inner, duration);
  step.values = {};
  return true;
}

bool ThreadSteps::TakeLoss(const OrderedEvent& event, CallStep& step) {
  if (event.detail == 0) {
    ++lost_ranges_;
  } else {
    lost_calls_ += event.detail;
  }
  if (event.ticks < from_ || event.ticks > to_) return false;
  step = {.kind = EventKind::kLost,
          .function = event.function(),
          .depth = depth_,
          .ticks = event.ticks,
          .lost = event.detail};
  return true;
}

Result<bool> ThreadSteps::Next(CallStep& step) {
  while (true) {
    if (at_ == batch_.events.size()) {
      TRY_ASSIGN(const bool more, Load());
      if (!more) break;
    }
    const OrderedEvent& event = batch_.events[at_];
    last_ticks_ = event.ticks;
    if (event.kind() == EventKind::kEntry) {
      ++at_;
      if (Enter(event, step)) return true;
    } else if (event.kind() == EventKind::kLost) {
      ++at_;
      if (TakeLoss(event, step)) return true;
    } else if (!open_.empty() && open_.back().function == event.function()) {
      ++at_;
      if (Leave(event.ticks, event.kind(), step)) {
        step.values = batch_.ValuesOf(event);
        return true;
      }
    } else if (FindOpen(open_, event.function()) == open_.size()) {
      ++at_;
      ++exits_alone_;
    } else {  // the calls inside it have no end of their own
      ++entries_alone_;
      if (Leave(event.ticks, EventKind::kLeft, step)) return true;
    }
  }
  while (!open_.empty()) {
    if (!Leave(last_ticks_, EventKind::kLeft, step)) continue;
    step.unfinished = true;
    return true;
  }
  return false;
}

MergedSteps::MergedSteps(TraceCalls& calls) {
  for (const size_t row : calls.threads()) {
    sources_.push_back({.steps = std::make_unique<ThreadSteps>(calls, row), .ahead = {}});
    Queue(static_cast<uint32_t>(sources_.size() - 1), sources_.back().steps->NextTicks());
  }
}

void MergedSteps::Queue(uint32_t source, uint64_t ticks) {
  turns_.push_back({ticks, source});
  std::ranges::push_heap(turns_, std::greater<>());
}

void MergedSteps::TakeTurn() {
  std::ranges::pop_heap(turns_, std::greater<>());
  current_ = turns_.back().source;
  turns_.pop_back();
}

Result<bool> MergedSteps::Fill(Source& source) {
  if (!source.has_ahead) {
    TRY_ASSIGN(source.has_ahead, source.steps->Next(source.ahead));
  }
  return source.has_ahead;
}

Result<bool> MergedSteps::Next(CallStep& step) {
  while (true) {
    if (current_ == UINT32_MAX) {
      if (turns_.empty()) return false;
      TakeTurn();
    }
    Source& source = sources_[current_];
    TRY_ASSIGN(const bool more, Fill(source));
    if (!more) {
      source.steps.reset();
      current_ = UINT32_MAX;
      continue;
    }
    if (turns_.empty() || source.ahead.ticks <= turns_.front().ticks) {
      source.has_ahead = false;
      step = source.ahead;
      return true;
    }
    Queue(current_, source.ahead.ticks);
    TakeTurn();
  }
}

Result<bool> MergedSteps::TakeEnd(uint32_t depth, CallStep& step) {
  Source& source = sources_[current_];
  TRY_ASSIGN(const bool more, Fill(source));
  const EventKind kind = source.ahead.kind;
  if (!more || kind == EventKind::kEntry || kind == EventKind::kLost) return false;
  if (source.ahead.depth != depth || source.ahead.unfinished) return false;
  source.has_ahead = false;
  step = source.ahead;
  return true;
}

}  // namespace stackreel::analyze
