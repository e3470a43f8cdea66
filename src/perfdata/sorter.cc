#include "perfdata/sorter.h"

#include <algorithm>
#include <utility>

namespace stackreel::perfdata {
namespace {

// Times that perf writes where there is none.
bool IsTime(uint64_t time) { return time != 0 && time != UINT64_MAX; }

}  // namespace

struct RoundSorter::State {
  struct Key {
    uint64_t time;
    size_t index;  // in held
    friend auto operator<=>(const Key&, const Key&) = default;
  };

  const Reader& reader;
  TimedSink& sink;
  Counters& counters;
  std::vector<TimedRecord> held;  // in file order
  std::vector<Key> keys;          // of the records being passed on
  uint64_t largest = 0;           // time seen
  uint64_t limit = 0;             // largest time seen before the last round
  uint64_t passed = 0;            // largest time passed on

  Status Flush(uint64_t up_to);
};

// Passes on what is not younger than `up_to`.
Status RoundSorter::State::Flush(uint64_t up_to) {
  keys.clear();
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i].time <= up_to) keys.push_back({held[i].time, i});
  }
  if (keys.empty()) return {};
  if (!std::is_sorted(keys.begin(), keys.end())) std::sort(keys.begin(), keys.end());
  for (const Key& key : keys) TRY(sink.OnTimedRecord(held[key.index]));
  passed = std::max(passed, keys.back().time);
  std::erase_if(held, [up_to](const TimedRecord& record) { return record.time <= up_to; });
  return {};
}

RoundSorter::RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters)
    : state_(new State{reader, sink, counters, {}, {}}) {}
RoundSorter::~RoundSorter() = default;

Status RoundSorter::OnRecord(const RawRecord& raw) {
  State& state = *state_;
  TimedRecord record = {raw, 0, state.reader.events().IndexOf(raw, state.reader.endian())};
  if (record.event) {
    const std::optional<uint64_t> time =
        state.reader.events().TimeOf(raw, state.reader.endian(), *record.event);
    if (time && IsTime(*time)) record.time = *time;
  }
  if (raw.record_type() == RecordType::kFinishedRound) {
    TRY(state.Flush(state.limit));
    state.limit = state.largest;
  }
  if (record.time == 0) return state.sink.OnTimedRecord(record);
  if (record.time < state.passed) state.counters.Add("perfdata.out_of_order");
  state.largest = std::max(state.largest, record.time);
  state.held.push_back(std::move(record));
  return {};
}

Status RoundSorter::Finish() { return state_->Flush(UINT64_MAX); }

}  // namespace stackreel::perfdata
