// The calls of a trace, as views show them: those asked for, with depth and duration, of one thread
// or of all in order of time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "base/error.h"
#include "tracedata/trace_source.h"

namespace stackreel::analyze {

// Ticks as nanoseconds, quickly.
class TickScale {
 public:
  explicit TickScale(const tracedata::TraceClock& clock);
  [[nodiscard]] uint64_t Nanoseconds(uint64_t ticks) const {  // of a duration
    return static_cast<uint64_t>((static_cast<unsigned __int128>(ticks) * factor_) >> shift_);
  }
  // CLOCK_MONOTONIC at that time; 0 where that would be before its beginning.
  [[nodiscard]] uint64_t Time(uint64_t ticks) const;
  // The least number of ticks that last at least so long.
  [[nodiscard]] uint64_t Ticks(uint64_t nanoseconds) const;

 private:
  tracedata::TraceClock clock_;
  uint64_t factor_ = 0;
  uint32_t shift_ = 0;
};

// Which calls are shown. Names are patterns as MatchesFunction takes them; empty lists let all
// pass.
struct CallSelection {
  std::vector<std::string> functions;  // -F: these, and what they call
  std::vector<std::string> without;    // -N: not these, nor what they call
  std::vector<std::string> callers;    // -C: only the ways to these
  uint32_t max_depth = UINT32_MAX;     // -D: levels of calls shown
  uint64_t min_nanoseconds = 0;        // -t: not what took less
  std::vector<uint32_t> tids;
  // Nanoseconds since the trace's first event: calls that begin then, both ends included.
  uint64_t time_start = 0, time_end = UINT64_MAX;
};

// What views ask of a trace's functions. Names are made when asked for; more functions may come
// while events are read.
class FunctionNames {
 public:
  FunctionNames(const tracedata::TraceSource& source, const CallSelection& selection);
  // Demangled; without parameters. Stays where it is.
  const std::string& NameOf(uint32_t function) {
    if (function >= names_.size() || names_[function] == nullptr) MakeName(function);
    return *names_[function];
  }
  static constexpr uint8_t kWanted = 1, kUnwanted = 2, kCalled = 4;
  // In which of the selection's lists it is.
  uint8_t MarksOf(uint32_t function) {
    if (function >= marks_.size()) AddMarks(function);
    return marks_[function];
  }
  [[nodiscard]] const tracedata::TraceFunction& At(uint32_t function) const {
    return source_.tables().functions[function];
  }
  // "libc.so.6"; "" if it is not known.
  [[nodiscard]] std::string_view ModuleNameOf(uint32_t function) const;

 private:
  void MakeName(uint32_t function);
  void AddMarks(uint32_t function);

  const tracedata::TraceSource& source_;
  const CallSelection& selection_;
  std::vector<std::unique_ptr<const std::string>> names_;
  std::vector<uint8_t> marks_;
};

// One entry or exit that is shown.
struct CallStep {
  tracedata::EventKind kind = tracedata::EventKind::kEntry;  // or kExit, kLeft, kLost
  bool unfinished = false;  // kLeft: the trace ends within the call; `ticks` is its last event's
  uint32_t function = 0;    // kLost: the LossReason
  uint32_t depth = 0;       // 0: not inside another call that is shown
  uint64_t ticks = 0;
  // Of an end, in ticks: how long the call took, and how much of that in calls that are shown.
  uint64_t duration = 0, inner = 0;
  uint64_t lost = 0;     // kLost: calls; 0: it is not known how many
  ByteView values = {};  // arguments or return value; valid until the next call of Next()
};

// The whole of a trace that is read.
class TraceCalls {
 public:
  // All that is handed in must outlive it.
  TraceCalls(tracedata::TraceSource& source, const CallSelection& selection);

  [[nodiscard]] tracedata::TraceSource& source() { return source_; }
  [[nodiscard]] const CallSelection& selection() const { return selection_; }
  FunctionNames& names() { return names_; }
  [[nodiscard]] const TickScale& scale() const { return scale_; }
  // When the first event was, of any thread; 0 if there is none.
  [[nodiscard]] uint64_t first_ticks() const { return first_ticks_; }
  // Rows of the threads that are asked for and have events, in order of their first ones.
  [[nodiscard]] const std::vector<size_t>& threads() const { return threads_; }
  // trace.lost_calls, trace.lost_ranges (kLost without a number), trace.exit_without_entry,
  // trace.entry_without_exit.
  Counters counters;

 private:
  tracedata::TraceSource& source_;
  const CallSelection& selection_;
  FunctionNames names_;
  TickScale scale_;
  uint64_t first_ticks_ = 0;
  std::vector<size_t> threads_;
};

// The calls of one thread. Where exits are missing, calls end with the one around them.
//
// With -t and -C it must be known at a call's entry how the call goes on: then the thread is read
// twice, and a bit for each of its calls kept.
class ThreadSteps {
 public:
  ThreadSteps(TraceCalls& calls, size_t thread_row);
  ~ThreadSteps();
  ThreadSteps(const ThreadSteps&) = delete;
  ThreadSteps& operator=(const ThreadSteps&) = delete;

  // False: that was all.
  Result<bool> Next(CallStep& step);
  // No step to come is before this time.
  [[nodiscard]] uint64_t NextTicks() const;
  [[nodiscard]] size_t thread_row() const { return thread_row_; }

 private:
  struct Open {
    uint64_t start = 0;
    uint64_t inner = 0;
    uint32_t function = 0;
    bool shown = false;
    uint8_t marks = 0;
  };

  Status Judge();
  Result<bool> Load();
  // These three fill `step` if it is shown.
  bool Enter(const tracedata::OrderedEvent& event, CallStep& step);
  bool Leave(uint64_t ticks, tracedata::EventKind kind, CallStep& step);
  bool TakeLoss(const tracedata::OrderedEvent& event, CallStep& step);
  template <typename Call>
  static size_t FindOpen(const std::vector<Call>& open, uint32_t function);

  TraceCalls& calls_;
  FunctionNames& names_;
  size_t thread_row_;
  std::unique_ptr<tracedata::ThreadCalls> events_;
  tracedata::EventBatch batch_;
  size_t at_ = 0;
  std::vector<Open> open_;
  uint32_t depth_ = 0;                  // of open_, shown
  uint32_t wanted_ = 0, unwanted_ = 0;  // of open_
  uint64_t last_ticks_ = 0;
  uint64_t from_ = 0, to_ = UINT64_MAX;  // ticks
  bool named_ = false;                   // wanted_ and unwanted_ are needed
  bool judged_ = false;                  // keep_ is needed
  bool keep_is_made_ = false;
  uint64_t entry_ = 0;      // entries met so far
  std::vector<bool> keep_;  // by entry
  uint64_t exits_alone_ = 0, entries_alone_ = 0, lost_calls_ = 0, lost_ranges_ = 0;
};

// The steps of all threads in order of time; those of one thread in their order.
class MergedSteps {
 public:
  explicit MergedSteps(TraceCalls& calls);
  // False: that was all.
  Result<bool> Next(CallStep& step);
  // Of the thread of the step that Next() gave last: the row in the trace's tables.
  [[nodiscard]] size_t thread_row() const { return sources_[current_].steps->thread_row(); }
  // After an entry: if the very next step of that thread is its end, takes it, out of turn. The
  // entry's values are gone then.
  Result<bool> TakeEnd(uint32_t depth, CallStep& step);

 private:
  struct Source {
    std::unique_ptr<ThreadSteps> steps;
    CallStep ahead;
    bool has_ahead = false;
  };
  struct Turn {
    uint64_t ticks = 0;
    uint32_t source = 0;
    friend bool operator>(const Turn& a, const Turn& b) {
      return a.ticks != b.ticks ? a.ticks > b.ticks : a.source > b.source;
    }
  };
  void Queue(uint32_t source, uint64_t ticks);
  void TakeTurn();
  Result<bool> Fill(Source& source);

  std::vector<Source> sources_;
  std::vector<Turn> turns_;        // a heap; the soonest first
  uint32_t current_ = UINT32_MAX;  // is not in it
};

}  // namespace stackreel::analyze
