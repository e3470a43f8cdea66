// Reads any bytes as a recording; and what could be read, written again in some form, must be read
// back equal.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "base/memory_io.h"
#include "perfdata/reader.h"
#include "perfdata/sorter.h"
#include "perfdata/writer.h"

namespace stackreel::perfdata {
namespace {

// Takes every record apart and keeps it, as the event it belongs to and its encoded form.
class DecodingSink : public RecordSink {
 public:
  struct Entry {
    std::optional<uint32_t> event;
    uint32_t type = 0;
    std::vector<uint8_t> encoded;
    friend bool operator==(const Entry&, const Entry&) = default;
  };

  DecodingSink(const EventTable& events, Endian endian, Writer* writer)
      : events_(events), endian_(endian), writer_(writer) {}

  Status OnRecord(const RawRecord& raw) override {
    switch (raw.record_type()) {
      case RecordType::kHeaderAttr:
      case RecordType::kHeaderFeature:
      case RecordType::kHeaderBuildId:
      case RecordType::kHeaderTracingData:
      case RecordType::kEventUpdate:
      case RecordType::kAuxtrace:
        return {};  // the writer has its own of these, or cannot have them
      default:
        break;
    }
    const std::optional<uint32_t> event = events_.IndexOf(raw, endian_);
    const Attr* attr = event ? &events_.events()[*event].attr : nullptr;
    Result<std::vector<uint8_t>> encoded = Encode(raw, attr);
    if (!encoded) return {};
    if (writer_ != nullptr) CHECK(writer_->WriteEncoded(*encoded));
    entries_.push_back({event, raw.type, std::move(*encoded)});
    return {};
  }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  [[nodiscard]] Result<std::vector<uint8_t>> Encode(const RawRecord& raw, const Attr* attr) const {
    if (raw.record_type() == RecordType::kSample) {
      if (attr == nullptr) return Fail(ErrorKind::kDamaged, "no event");
      Sample sample;
      TRY(DecodeSample(raw, *attr, endian_, sample));
      return EncodeSample(sample, raw.misc, *attr, endian_);
    }
    TRY_ASSIGN(const Record record, DecodeRecord(raw, {endian_, attr}));
    // Too short for its trailer: what it has instead is not written, and may have named an event.
    if (attr != nullptr && attr->sample_id_all() && !record.sample_id) {
      return Fail(ErrorKind::kDamaged, "no trailer");
    }
    return EncodeRecord(record, {endian_, attr});
  }

  const EventTable& events_;
  Endian endian_;
  Writer* writer_;
  std::vector<Entry> entries_;
};

class TimeCheckingSink : public TimedSink {
 public:
  explicit TimeCheckingSink(const Counters& counters) : counters_(counters) {}
  Status OnTimedRecord(const TimedRecord& record) override {
    if (record.time == 0) return {};
    CHECK(record.time >= last_ || counters_.Get("perfdata.out_of_order") > 0);
    last_ = record.time;
    return {};
  }

 private:
  const Counters& counters_;
  uint64_t last_ = 0;
};

// Reads with a sorter behind; gives the reader for what it learned.
std::unique_ptr<Reader> ReadThrough(FileSource& source) {
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  if (!reader) return nullptr;
  Counters counters;
  TimeCheckingSink timed(counters);
  RoundSorter sorter(**reader, timed, counters);
  const Result<ReadEnd> end = (*reader)->ReadAll(sorter);
  // A part of a directory is known as such only at its end if it comes through a pipe.
  CHECK(end || end.error().kind == ErrorKind::kUnsupported);
  CHECK(sorter.Finish());
  return std::move(*reader);
}

void CheckSameFeatures(const Reader& before, const Reader& after) {
  for (const auto& [feature, bytes] : before.features().raw) {
    // The first is the writer's own; the other is not true of what it writes.
    if (feature == static_cast<uint32_t>(Feature::kCompressed) ||
        feature == static_cast<uint32_t>(Feature::kDirFormat)) {
      continue;
    }
    const auto it = after.features().raw.find(feature);
    CHECK(bytes.empty() || (it != after.features().raw.end() && it->second == bytes));
  }
}

// Whether a record's event does not depend on what happens to lie where its id would be.
bool HaveOneLayout(const std::vector<Event>& events) {
  return std::ranges::all_of(events, [&events](const Event& event) {
    return event.attr.sample_type == events.front().attr.sample_type &&
           event.attr.sample_id_all() == events.front().attr.sample_id_all();
  });
}

// Writes what `source` holds, reads that, and compares.
void CheckRoundTrip(FileSource& source, const Reader& known, const WriterOptions& options) {
  const std::vector<Event>& events = known.events().events();
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  CHECK(reader);
  MemorySink file(options.container == Container::kFile);
  Result<std::unique_ptr<Writer>> writer = Writer::Create(file, options, events);
  if (!writer) return;  // more ids than a HEADER_ATTR record holds
  DecodingSink written(known.events(), known.endian(), writer->get());
  CHECK((*reader)->ReadAll(written));
  const bool is_file = options.container == Container::kFile;
  // Without HOSTNAME, the feature bits of a big-endian file are guessed.
  const bool with_features =
      is_file && (known.endian() == Endian::kLittle ||
                  known.features().raw.contains(static_cast<uint32_t>(Feature::kHostname)));
  CHECK((*writer)->Finish(with_features ? known.features().raw
                                        : std::map<uint32_t, std::vector<uint8_t>>()));

  MemorySource copy(file.bytes(), is_file);
  const std::unique_ptr<Reader> first = ReadThrough(copy);
  CHECK(first != nullptr && first->events().events().size() == events.size());
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& event = first->events().events()[i];
    CHECK(event.ids == events[i].ids);
    CHECK(!events[i].attr.tail.empty() ||
          EncodeAttr(event.attr, Endian::kLittle) == EncodeAttr(events[i].attr, Endian::kLittle));
  }
  MemorySource again(file.bytes(), is_file);
  Result<std::unique_ptr<Reader>> second = Reader::Open(again);
  CHECK(second);
  DecodingSink read(first->events(), (*second)->endian(), nullptr);
  Result<ReadEnd> end = (*second)->ReadAll(read);
  CHECK(end && end->complete && !end->unfinished);
  if (HaveOneLayout(events)) {
    CHECK(read.entries().size() >= written.entries().size());
    CHECK(std::equal(written.entries().begin(), written.entries().end(), read.entries().begin()));
  }
  if (with_features) CheckSameFeatures(known, **second);
}

void Run(ByteView bytes) {
  MemorySource pipe(bytes, false, 13);
  ReadThrough(pipe);
  MemorySource file(bytes);
  const std::unique_ptr<Reader> known = ReadThrough(file);
  if (known == nullptr) return;
  // Which form to write is taken from the input too.
  const uint8_t choice = bytes.back();
  WriterOptions options;
  options.container = (choice & 1) != 0 ? Container::kPipe : Container::kFile;
  options.endian = known->endian();
  options.compression_level = (choice & 2) != 0 ? 1 : 0;
  MemorySource source(bytes);
  CheckRoundTrip(source, *known, options);
}

}  // namespace
}  // namespace stackreel::perfdata

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stackreel::perfdata::Run({data, size});
  return 0;
}
