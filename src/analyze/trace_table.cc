#include "analyze/trace_table.h"

#include <algorithm>

namespace stackreel::analyze {

using tracedata::EventKind;

void DurationCounts::Merge(const DurationCounts& other) {
  if (octaves_.size() < other.octaves_.size()) octaves_.resize(other.octaves_.size());
  for (size_t octave = 0; octave < other.octaves_.size(); ++octave) {
    if (other.octaves_[octave] == nullptr) continue;
    if (octaves_[octave] == nullptr) octaves_[octave] = std::make_unique<uint64_t[]>(kBuckets);
    for (uint32_t i = 0; i < kBuckets; ++i) octaves_[octave][i] += other.octaves_[octave][i];
  }
}

uint64_t DurationCounts::Quantile(double fraction) const {
  uint64_t all = 0;
  for (const auto& octave : octaves_) {
    for (uint32_t i = 0; octave != nullptr && i < kBuckets; ++i) all += octave[i];
  }
  if (all == 0) return 0;
  // As many as must not exceed it; at least one.
  auto left = static_cast<uint64_t>(fraction * static_cast<double>(all) + 0.9999999);
  left = std::clamp<uint64_t>(left, 1, all);
  for (size_t octave = 0; octave < octaves_.size(); ++octave) {
    for (uint32_t i = 0; octaves_[octave] != nullptr && i < kBuckets; ++i) {
      const uint64_t here = octaves_[octave][i];
      if (here < left) {
        left -= here;
        continue;
      }
      if (octave == 0) return i;
      const size_t shift = octave - 1;
      const uint64_t low = (uint64_t{kBuckets} + i) << shift;
      return low + (shift == 0 ? 0 : uint64_t{1} << (shift - 1));
    }
  }
  return 0;
}

namespace {

// The sums of all threads, by function.
class TableMaker {
 public:
  explicit TableMaker(TraceTable& table) : table_(table) {}

  void AddThread() { std::ranges::fill(open_, 0); }
  void Add(const CallStep& step) {
    table_.last_ticks = std::max(table_.last_ticks, step.ticks);
    if (step.kind == EventKind::kLost) return;
    if (step.function >= rows_.size()) {
      rows_.resize(step.function + size_t{1});
      open_.resize(rows_.size());
    }
    if (step.kind == EventKind::kEntry) {
      ++open_[step.function];
      return;
    }
    FunctionTimes& row = rows_[step.function];
    ++row.calls;
    if (step.unfinished) ++row.unfinished;
    if (--open_[step.function] == 0) row.total += step.duration;
    row.self += step.duration - step.inner;
    row.sum += step.duration;
    row.min = std::min(row.min, step.duration);
    row.max = std::max(row.max, step.duration);
    row.durations.Add(step.duration);
  }
  void Finish() {
    for (uint32_t function = 0; function < rows_.size(); ++function) {
      if (rows_[function].calls == 0) continue;
      table_.calls += rows_[function].calls;
      rows_[function].function = function;
      table_.rows.push_back(std::move(rows_[function]));
    }
  }

 private:
  TraceTable& table_;
  std::vector<FunctionTimes> rows_;  // by function
  std::vector<uint32_t> open_;       // of this thread, by function
};

}  // namespace

Result<TraceTable> MakeTraceTable(TraceCalls& calls) {
  TraceTable table;
  table.first_ticks = calls.first_ticks();
  TableMaker maker(table);
  for (const size_t row : calls.threads()) {
    maker.AddThread();
    ThreadSteps steps(calls, row);
    CallStep step;
    bool any = false;
    while (true) {
      TRY_ASSIGN(const bool more, steps.Next(step));
      if (!more) break;
      maker.Add(step);
      any = true;
    }
    if (any) ++table.threads;
  }
  maker.Finish();
  return table;
}

}  // namespace stackreel::analyze
