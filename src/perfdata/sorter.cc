#include "perfdata/sorter.h"

#include <algorithm>
#include <utility>

#include "perfdata/pac_mask.h"
#include "perfdata/rereader.h"

namespace stackreel::perfdata {
namespace {

// Times that perf writes where there is none.
bool IsTime(uint64_t time) { return time != 0 && time != UINT64_MAX; }

// Where a record is in the order: by time, then as in the file. Records out of one compressed
// record share an offset.
struct Place {
  uint64_t time = 0;
  uint64_t offset = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// A record that was let go.
struct Parked {
  Place place;
  uint32_t size = 0;
  uint32_t event = 0;
};

// The memory that records held keep, as the sizes of their blocks. Records of one block come one
// behind the other.
class HeldBytes {
 public:
  void Add(const RawRecord& raw) {
    if (raw.block.get() != last_block_) {
      last_block_ = raw.block.get();
      bytes_ += raw.block ? raw.block->bytes.size() : 0;
    }
    bytes_ += sizeof(TimedRecord);
  }
  void Clear() { *this = {}; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  const Block* last_block_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace

struct RoundSorter::State {
  State(const Reader& r, TimedSink& s, Counters& c, const Limits& l)
      : reader(r), sink(s), counters(c), limits(l) {
    if (FileSource* source = reader.seekable_source()) rereader.emplace(*source, reader.endian());
  }

  [[nodiscard]] bool IsReadable(const RawRecord& raw) const {
    return rereader && !raw.decompressed;
  }
  void Hold(const RawRecord& raw, uint64_t time, std::optional<uint32_t> event);
  void Park();
  Status PassOlderHalf();
  Status Flush(uint64_t up_to);
  Status PassParked(const Parked& record);
  Status Pass(const TimedRecord& record);

  const Reader& reader;
  TimedSink& sink;
  Counters& counters;
  Limits limits;
  std::optional<Rereader> rereader;
  std::vector<TimedRecord> held;  // in file order
  std::vector<Parked> parked;
  std::vector<std::pair<Place, size_t>> due;  // in held; kept for its memory
  HeldBytes readable, unreadable;
  uint64_t largest = 0;  // time seen
  uint64_t limit = 0;    // largest time seen before the last round
  uint64_t passed = 0;   // largest time passed on
};

void RoundSorter::State::Hold(const RawRecord& raw, uint64_t time, std::optional<uint32_t> event) {
  (IsReadable(raw) ? readable : unreadable).Add(raw);
  held.emplace_back(raw, time, event);
}

// Lets all go that can be read again.
void RoundSorter::State::Park() {
  std::erase_if(held, [this](const TimedRecord& record) {
    if (!IsReadable(record.raw)) return false;
    parked.push_back({{record.time, record.raw.file_offset},
                      static_cast<uint32_t>(record.raw.bytes.size()),
                      record.event.value_or(0)});
    return true;
  });
  readable.Clear();
}

Status RoundSorter::State::PassOlderHalf() {
  counters.Add("perfdata.forced_flush");
  std::vector<uint64_t> times;
  times.reserve(held.size());
  for (const TimedRecord& record : held) times.push_back(record.time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return Flush(*middle);
}

Status RoundSorter::State::Pass(const TimedRecord& record) {
  passed = std::max(passed, record.time);
  return sink.OnTimedRecord(record);
}

Status RoundSorter::State::PassParked(const Parked& parked_record) {
  TimedRecord record;
  TRY(rereader->Read(parked_record.place.offset, parked_record.size, record.raw));
  record.time = parked_record.place.time;
  record.event = parked_record.event;
  return Pass(record);
}

// Passes on what is not younger than `up_to`: the parked and the held, merged.
Status RoundSorter::State::Flush(uint64_t up_to) {
  due.clear();
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i].time <= up_to) due.push_back({{held[i].time, held[i].raw.file_offset}, i});
  }
  if (!std::ranges::is_sorted(due)) std::ranges::sort(due);
  const auto by_place = [](const Parked& a, const Parked& b) { return a.place < b.place; };
  if (!std::ranges::is_sorted(parked, by_place)) std::ranges::sort(parked, by_place);

  size_t next_parked = 0;
  for (const auto& [place, index] : due) {
    for (; next_parked < parked.size() && parked[next_parked].place < place; ++next_parked) {
      TRY(PassParked(parked[next_parked]));
    }
    TRY(Pass(held[index]));
  }
  for (; next_parked < parked.size() && parked[next_parked].place.time <= up_to; ++next_parked) {
    TRY(PassParked(parked[next_parked]));
  }
  parked.erase(parked.begin(), parked.begin() + static_cast<std::ptrdiff_t>(next_parked));
  if (due.empty()) return {};
  std::erase_if(held, [up_to](const TimedRecord& record) { return record.time <= up_to; });
  readable.Clear();
  unreadable.Clear();
  for (const TimedRecord& record : held) {
    (IsReadable(record.raw) ? readable : unreadable).Add(record.raw);
  }
  return {};
}

RoundSorter::RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters)
    : RoundSorter(reader, sink, counters, Limits()) {}
RoundSorter::RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters,
                         const Limits& limits)
    : state_(std::make_unique<State>(reader, sink, counters, limits)) {}
RoundSorter::~RoundSorter() = default;

Status RoundSorter::OnRecord(const RawRecord& raw) {
  State& state = *state_;
  const EventTable& events = state.reader.events();
  const std::optional<uint32_t> event = events.IndexOf(raw, state.reader.endian());
  uint64_t time = 0;
  if (event) {
    const std::optional<uint64_t> read = events.TimeOf(raw, state.reader.endian(), *event);
    if (read && IsTime(*read)) time = *read;
  }
  if (const auto read = SideBandTime(raw, state.reader.endian()); read && IsTime(*read)) {
    time = *read;
  }
  if (raw.record_type() == RecordType::kFinishedRound) {
    TRY(state.Flush(state.limit));
    state.limit = state.largest;
  }
  if (time == 0) return state.sink.OnTimedRecord({raw, 0, event});
  if (time < state.passed) state.counters.Add("perfdata.out_of_order");
  state.largest = std::max(state.largest, time);
  state.Hold(raw, time, event);
  if (state.readable.bytes() > state.limits.readable) state.Park();
  if (state.unreadable.bytes() > state.limits.unreadable) return state.PassOlderHalf();
  return {};
}

Status RoundSorter::Finish() { return state_->Flush(UINT64_MAX); }

}  // namespace stackreel::perfdata
