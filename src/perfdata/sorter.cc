#include "perfdata/sorter.h"

#include <algorithm>
#include <utility>

#include "perfdata/pac_mask.h"
#include "perfdata/rereader.h"

namespace stackreel::perfdata {
namespace {

// Times that perf writes where there is none.
bool IsTime(uint64_t time) { return time != 0 && time != UINT64_MAX; }

constexpr uint32_t kNoEvent = UINT32_MAX;
std::optional<uint32_t> EventOf(uint32_t event) {
  return event == kNoEvent ? std::nullopt : std::optional(event);
}

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

// A record that waits in its block. Nothing follows it outside its size: what has such a tail has
// no time.
struct Held {
  Place place;
  const uint8_t* bytes = nullptr;
  uint32_t type = 0;
  uint32_t block = 0;  // in State::blocks
  uint32_t event = kNoEvent;
  uint16_t size = 0, misc = 0;
  bool decompressed = false;
};

// The memory that records held keep, as the sizes of their blocks. Records of one block come one
// behind the other.
class HeldBytes {
 public:
  void Add(uint32_t block, const BlockPtr& ptr) {
    if (block != last_block_) {
      last_block_ = block;
      bytes_ += ptr ? ptr->view().size() : 0;
    }
    bytes_ += sizeof(Held);
  }
  void Clear() { *this = {}; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  uint32_t last_block_ = UINT32_MAX;
  uint64_t bytes_ = 0;
};

}  // namespace

struct RoundSorter::State {
  State(const Reader& r, TimedSink& s, Counters& c, const Limits& l)
      : reader(r), endian(r.endian()), sink(s), counters(c), limits(l) {
    if (FileSource* source = reader.seekable_source()) rereader.emplace(*source, reader.endian());
  }

  // Again.
  [[nodiscard]] bool IsReadable(bool decompressed) const { return rereader && !decompressed; }
  [[nodiscard]] bool LeavesOut(const RawRecord& raw) const {
    return leaves_out_samples && raw.record_type() == RecordType::kSample;
  }
  HeldBytes& BytesOf(const Held& record) {
    return IsReadable(record.decompressed) ? readable : unreadable;
  }
  void Hold(const RawRecord& raw, uint64_t time, std::optional<uint32_t> event);
  void CountHeld();
  Status PassHeld(const Held& record);
  void Park();
  Status PassOlderHalf();
  void SortDue();
  Status Flush(uint64_t up_to);
  Status PassParked(const Parked& record);
  Status Pass(const TimedRecord& record);

  const Reader& reader;
  const Endian endian;
  TimedSink& sink;
  Counters& counters;
  Limits limits;
  std::optional<Rereader> rereader;
  std::vector<Held> held;        // in file order
  std::vector<BlockPtr> blocks;  // of those held
  std::vector<Parked> parked;
  // In held; kept for their memory, as `passing` is.
  std::vector<std::pair<Place, size_t>> due, merged;
  TimedRecord passing;
  HeldBytes readable, unreadable;
  bool leaves_out_samples = false;
  uint64_t largest = 0;  // time seen
  uint64_t limit = 0;    // largest time seen before the last round
  uint64_t passed = 0;   // largest time passed on
};

void RoundSorter::State::Hold(const RawRecord& raw, uint64_t time, std::optional<uint32_t> event) {
  if (blocks.empty() || blocks.back() != raw.block) blocks.push_back(raw.block);
  const auto block = static_cast<uint32_t>(blocks.size() - 1);
  held.push_back({{time, raw.file_offset},
                  raw.bytes.data(),
                  raw.type,
                  block,
                  event.value_or(kNoEvent),
                  static_cast<uint16_t>(raw.bytes.size()),
                  raw.misc,
                  raw.decompressed});
  BytesOf(held.back()).Add(block, raw.block);
}

// After some have gone: lets go their blocks, and measures what is left.
void RoundSorter::State::CountHeld() {
  readable.Clear();
  unreadable.Clear();
  std::vector<BlockPtr> kept;
  uint32_t last = UINT32_MAX;
  for (Held& record : held) {
    if (record.block != last) {
      last = record.block;
      kept.push_back(std::move(blocks[last]));
    }
    record.block = static_cast<uint32_t>(kept.size() - 1);
    BytesOf(record).Add(record.block, kept.back());
  }
  blocks = std::move(kept);
}

// Lets all go that can be read again.
void RoundSorter::State::Park() {
  std::erase_if(held, [this](const Held& record) {
    if (!IsReadable(record.decompressed)) return false;
    parked.push_back({record.place, record.size, record.event});
    return true;
  });
  CountHeld();
}

Status RoundSorter::State::PassOlderHalf() {
  counters.Add("perfdata.forced_flush");
  std::vector<uint64_t> times;
  times.reserve(held.size());
  for (const Held& record : held) times.push_back(record.place.time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return Flush(*middle);
}

Status RoundSorter::State::Pass(const TimedRecord& record) {
  passed = std::max(passed, record.time);
  if (LeavesOut(record.raw)) return {};
  return sink.OnTimedRecord(record);
}

Status RoundSorter::State::PassHeld(const Held& of) {
  TimedRecord& record = passing;
  record.raw.type = of.type;
  record.raw.misc = of.misc;
  record.raw.bytes = {of.bytes, of.size};
  record.raw.file_offset = of.place.offset;
  record.raw.decompressed = of.decompressed;
  if (record.raw.block != blocks[of.block]) record.raw.block = blocks[of.block];
  record.time = of.place.time;
  record.event = EventOf(of.event);
  return Pass(record);
}

Status RoundSorter::State::PassParked(const Parked& parked_record) {
  TimedRecord record;
  TRY(rereader->Read(parked_record.place.offset, parked_record.size, record.raw));
  record.time = parked_record.place.time;
  record.event = EventOf(parked_record.event);
  return Pass(record);
}

// Rings are sorted, each, and drained one behind the other: what is due are a few sorted runs.
void RoundSorter::State::SortDue() {
  std::vector<size_t> runs = {0};  // where they begin, and the end
  for (size_t i = 1; i < due.size(); ++i) {
    if (due[i] < due[i - 1]) runs.push_back(i);
  }
  runs.push_back(due.size());
  while (runs.size() > 2) {
    merged.resize(due.size());
    std::vector<size_t> longer = {0};
    for (size_t i = 0; i + 1 < runs.size(); i += 2) {
      const size_t end = i + 2 < runs.size() ? runs[i + 2] : runs[i + 1];
      const auto at = [this](size_t index) {
        return due.begin() + static_cast<std::ptrdiff_t>(index);
      };
      std::merge(at(runs[i]), at(runs[i + 1]), at(runs[i + 1]), at(end),
                 merged.begin() + static_cast<std::ptrdiff_t>(runs[i]));
      longer.push_back(end);
    }
    std::swap(due, merged);
    runs = std::move(longer);
  }
}

// Passes on what is not younger than `up_to`: the parked and the held, merged.
Status RoundSorter::State::Flush(uint64_t up_to) {
  due.clear();
  for (size_t i = 0; i < held.size(); ++i) {
    if (held[i].place.time <= up_to) due.emplace_back(held[i].place, i);
  }
  SortDue();
  const auto by_place = [](const Parked& a, const Parked& b) { return a.place < b.place; };
  if (!std::ranges::is_sorted(parked, by_place)) std::ranges::sort(parked, by_place);

  size_t next_parked = 0;
  for (const auto& [place, index] : due) {
    for (; next_parked < parked.size() && parked[next_parked].place < place; ++next_parked) {
      TRY(PassParked(parked[next_parked]));
    }
    TRY(PassHeld(held[index]));
  }
  for (; next_parked < parked.size() && parked[next_parked].place.time <= up_to; ++next_parked) {
    TRY(PassParked(parked[next_parked]));
  }
  parked.erase(parked.begin(), parked.begin() + static_cast<std::ptrdiff_t>(next_parked));
  if (due.empty()) return {};
  passing.raw.block.reset();
  std::erase_if(held, [up_to](const Held& record) { return record.place.time <= up_to; });
  CountHeld();
  return {};
}

RoundSorter::RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters)
    : RoundSorter(reader, sink, counters, Limits()) {}
RoundSorter::RoundSorter(const Reader& reader, TimedSink& sink, Counters& counters,
                         const Limits& limits)
    : state_(std::make_unique<State>(reader, sink, counters, limits)) {}
RoundSorter::~RoundSorter() = default;

void RoundSorter::LeaveOutSamples() { state_->leaves_out_samples = true; }

Status RoundSorter::OnRecord(const RawRecord& raw) {
  State& state = *state_;
  const EventTable& events = state.reader.events();
  const std::optional<uint32_t> event = events.IndexOf(raw, state.endian);
  uint64_t time = 0;
  if (event) {
    const std::optional<uint64_t> read = events.TimeOf(raw, state.endian, *event);
    if (read && IsTime(*read)) time = *read;
  }
  // One that cannot be read again is held nevertheless: it counts where many are.
  if (state.LeavesOut(raw) && (time == 0 || state.IsReadable(raw.decompressed))) {
    state.largest = std::max(state.largest, time);
    return {};
  }
  if (raw.type >= static_cast<uint32_t>(RecordType::kHeaderAttr)) {
    if (const auto read = SideBandTime(raw, state.endian); read && IsTime(*read)) time = *read;
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

void RoundSorter::BeforeTakeUp() { state_->sink.BeforeTakeUp(); }

Status RoundSorter::Finish() { return state_->Flush(UINT64_MAX); }

}  // namespace stackreel::perfdata
