#include "perfdata/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/byte_reader.h"
#include "base/check.h"
#include "perfdata/block_stream.h"
#include "perfdata/header.h"
#include "perfdata/part_merger.h"
#include "perfdata/tokenizer.h"

namespace stackreel::perfdata {
namespace {

// The smallest perf_event_attr and the ids section behind it.
constexpr uint64_t kMinAttrEntry = 64 + 16;
// What is kept in memory of a file that comes through a pipe: what lies before and behind the data.
constexpr size_t kMaxUnseekable = size_t{256} << 20;

uint64_t EndOf(const Section& section) {
  return section.size > UINT64_MAX - section.offset ? UINT64_MAX : section.offset + section.size;
}

// Reads sections of a file that can be sought in, or of the part of it that is in memory. All
// sections together are no larger than the file, or somebody made them overlap to fill our memory.
class SectionReader {
 public:
  SectionReader(FileSource& source, uint64_t size) : source_(&source), end_(size), left_(size) {}
  SectionReader(ByteView window, uint64_t base)
      : window_(window), base_(base), end_(base + window.size()), left_(window.size()) {}

  // As much of it as there is.
  Result<std::vector<uint8_t>> Read(Section section) {
    if (section.offset < base_ || section.offset > end_) return std::vector<uint8_t>();
    const uint64_t size = std::min({section.size, end_ - section.offset, left_});
    left_ -= size;
    std::vector<uint8_t> bytes(size);
    if (source_ == nullptr) {
      std::copy_n(window_.begin() + static_cast<std::ptrdiff_t>(section.offset - base_), size,
                  bytes.begin());
    } else {
      TRY_ASSIGN(const size_t got, source_->ReadAt(section.offset, bytes));
      bytes.resize(got);
    }
    return bytes;
  }

 private:
  FileSource* source_ = nullptr;
  ByteView window_;
  uint64_t base_ = 0;
  uint64_t end_;
  uint64_t left_;
};

class StreamReader : public Reader {
 public:
  StreamReader(FileSource& source, std::vector<FileSource*> parts)
      : source_(source), parts_(std::move(parts)) {}
  Status ReadHeaders();

  [[nodiscard]] Container container() const override {
    return header_.is_pipe() ? Container::kPipe : Container::kFile;
  }
  [[nodiscard]] Endian endian() const override { return header_.endian; }
  [[nodiscard]] std::optional<FilePlaces> places() const override {
    if (header_.is_pipe()) return std::nullopt;
    FilePlaces places;
    places.attr_size = header_.attr_size;
    places.attrs_offset = header_.attrs.offset;
    places.attr_count = header_.attr_size == 0 ? 0 : header_.attrs.size / header_.attr_size;
    places.data_offset = header_.data.offset;
    places.data_size = header_.data.size;
    places.features_offset = EndOf(header_.data);
    return places;
  }
  [[nodiscard]] const EventTable& events() const override { return events_; }
  [[nodiscard]] const Features& features() const override { return features_; }
  [[nodiscard]] const Counters& counters() const override { return counters_; }
  [[nodiscard]] uint64_t position() const override {
    return stream_->offset() + (merger_ ? merger_->position() : 0);
  }
  [[nodiscard]] uint64_t total() const override {
    uint64_t total = std::min(source_.size().value_or(0), data_end());
    for (const FileSource* part : parts_) total += part->size().value_or(0);
    return total;
  }
  [[nodiscard]] FileSource* seekable_source() const override {
    return source_.size() && parts_.empty() ? &source_ : nullptr;
  }
  Result<ReadEnd> ReadAll(RecordSink& sink) override;
  Result<bool> Next(RawRecord& record) override;

 private:
  [[nodiscard]] bool unfinished() const { return !header_.is_pipe() && header_.data.size == 0; }
  [[nodiscard]] uint64_t data_end() const {
    return header_.is_pipe() || unfinished() ? BlockStream::kToTheEnd : EndOf(header_.data);
  }
  Status ReadSeekable(uint64_t size);
  Status ReadUnseekable();
  Status ReadAttrs(SectionReader& sections);
  Status ReadFeatures(SectionReader& sections);
  Status ReadTail();
  void TakeFeature(uint64_t feature, ByteView bytes);
  void TakeNames();
  void TakeUp(const RawRecord& raw, RecordSink& sink);
  void TakeUpDecoded(const Record& record);
  void TakeFeatureUpdate(const EventUpdate& update);
  void TakeAttr(const HeaderAttr& header_attr);
  // `sink` is told before events and features change.
  Result<bool> ReadNext(RawRecord& record, RecordSink& sink);
  Result<bool> NextOfParts(RawRecord& record);
  [[nodiscard]] ReadEnd End() const;

  FileSource& source_;
  std::vector<FileSource*> parts_;  // of a directory
  FileHeader header_;
  std::optional<BlockStream> stream_;
  EventTable events_;
  Features features_;
  Counters counters_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<PartMerger> merger_;
  bool data_was_read_ = false;
  bool has_kernel_records_ = false;  // has passed some on
};

Status StreamReader::ReadHeaders() {
  const std::optional<uint64_t> size = source_.size();
  if (size) {
    stream_.emplace(source_, 0, BlockStream::kToTheEnd);
  } else {
    stream_.emplace(source_);
  }
  TRY(stream_->Ensure(kFileHeaderSize));
  TRY_ASSIGN(header_, ParseHeader(stream_->view()));
  if (header_.is_pipe()) {
    stream_->Advance(kPipeHeaderSize);
    return {};
  }
  return size ? ReadSeekable(*size) : ReadUnseekable();
}

Status StreamReader::ReadSeekable(uint64_t size) {
  SectionReader sections(source_, size);
  TRY(ReadAttrs(sections));
  TRY(ReadFeatures(sections));
  stream_.emplace(source_, header_.data.offset, data_end());
  return {};
}

// A file that comes through a pipe: what lies before the data is kept, what lies behind it is read
// when the data was.
Status StreamReader::ReadUnseekable() {
  if (EndOf(header_.attrs) > header_.data.offset) {
    return Fail(
        Error(ErrorKind::kUnsupported,
              "the events are described behind the data, and this input cannot be sought in")
            .AtOffset(header_.attrs.offset)
            .WithCure("give the file by its name instead of through a pipe"));
  }
  if (header_.data.offset > kMaxUnseekable) {
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("the data is said to begin at {:#x}", header_.data.offset))
                    .AtOffset(40));
  }
  TRY_ASSIGN(const size_t ready, stream_->Ensure(header_.data.offset));
  const size_t before = std::min<uint64_t>(ready, header_.data.offset);
  SectionReader sections(stream_->view().first(before), 0);
  TRY(ReadAttrs(sections));
  stream_->Advance(before);
  stream_->SetEnd(data_end());
  return {};
}

Status StreamReader::ReadAttrs(SectionReader& sections) {
  if (header_.attrs.size == 0) return {};
  if (header_.attr_size < kMinAttrEntry) {
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("the header gives the size of an event as {}; at least {} was "
                                  "expected",
                                  header_.attr_size, kMinAttrEntry))
                    .AtOffset(16));
  }
  TRY_ASSIGN(const std::vector<uint8_t> bytes, sections.Read(header_.attrs));
  const uint64_t count = bytes.size() / header_.attr_size;
  if (count < header_.attrs.size / header_.attr_size) counters_.Add("perfdata.bad_attr");
  std::optional<Error> first_error;
  for (uint64_t i = 0; i < count; ++i) {
    const ByteView entry = ByteView(bytes).subspan(i * header_.attr_size, header_.attr_size);
    Result<Attr> attr = DecodeAttr(entry.first(entry.size() - 16), header_.endian);
    if (!attr) {
      counters_.Add("perfdata.bad_attr");
      if (!first_error) first_error = std::move(attr.error());
      continue;
    }
    ByteReader ids_section(entry.last(16), header_.endian);
    const uint64_t ids_offset = ids_section.U64();
    const uint64_t ids_size = ids_section.U64();
    TRY_ASSIGN(const std::vector<uint8_t> ids, sections.Read({ids_offset, ids_size}));
    if (ids.size() < ids_size) counters_.Add("perfdata.bad_ids");
    Event event;
    event.attr = std::move(*attr);
    for (ByteReader reader(ids, header_.endian); reader.remaining() >= 8;) {
      event.ids.push_back(reader.U64());
    }
    events_.Add(std::move(event));
  }
  if (!events_.events().empty()) return {};
  if (first_error) return Fail(std::move(*first_error).AtOffset(header_.attrs.offset));
  return Fail(Error(ErrorKind::kDamaged, "the descriptions of the events are cut off")
                  .AtOffset(header_.attrs.offset));
}

// Behind the data there is a Section for each feature, ascending, and what they hold behind those.
Status StreamReader::ReadFeatures(SectionReader& sections) {
  const std::vector<uint32_t> list = header_.FeatureList();
  if (unfinished() || list.empty()) return {};
  TRY_ASSIGN(const std::vector<uint8_t> table, sections.Read({data_end(), 16 * list.size()}));
  ByteReader reader(table, header_.endian);
  for (const uint32_t feature : list) {
    const uint64_t offset = reader.U64();
    const uint64_t size = reader.U64();
    if (!reader.ok()) {
      counters_.Add("perfdata.missing_feature");
      continue;
    }
    TRY_ASSIGN(const std::vector<uint8_t> bytes, sections.Read({offset, size}));
    if (bytes.size() < size) {
      counters_.Add("perfdata.missing_feature");
      if (bytes.empty()) continue;
    }
    TakeFeature(feature, bytes);
  }
  TakeNames();
  if (features_.raw.contains(static_cast<uint32_t>(Feature::kDirFormat)) && parts_.empty()) {
    return Fail(Error(ErrorKind::kUnsupported,
                      "this is the first file of a directory that perf record --threads made; its "
                      "samples are in the files beside it")
                    .WithCure("give the directory instead of the file"));
  }
  return {};
}

Status StreamReader::ReadTail() {
  stream_->SetEnd(BlockStream::kToTheEnd);
  TRY(stream_->Ensure(kMaxUnseekable));
  SectionReader sections(stream_->view(), stream_->offset());
  return ReadFeatures(sections);
}

void StreamReader::TakeFeature(uint64_t feature, ByteView bytes) {
  if (feature == 0 || feature >= kFeatureBits) {
    counters_.Add("perfdata.unknown_feature");
    return;
  }
  const auto number = static_cast<uint32_t>(feature);
  const bool known = number <= static_cast<uint32_t>(Feature::kClnSize) ||
                     number == static_cast<uint32_t>(Feature::kStackreelPacMask) ||
                     number == static_cast<uint32_t>(Feature::kStackreelStackEnds) ||
                     number == static_cast<uint32_t>(Feature::kStackreelAnonymized);
  if (!known) counters_.Add("perfdata.unknown_feature");
  DecodeFeature(number, bytes, header_.endian, features_, counters_);
}

// Names from EVENT_DESC, which lists the events in their order; for tracepoints without one, the
// name in TRACING_DATA.
void StreamReader::TakeNames() {
  const bool same_order = features_.event_desc.size() == events_.events().size();
  for (uint32_t i = 0; i < features_.event_desc.size(); ++i) {
    const Event& described = features_.event_desc[i];
    if (described.name.empty()) continue;
    if (same_order) {
      events_.SetEventName(i, described.name);
    } else if (!described.ids.empty()) {
      events_.SetName(described.ids.front(), described.name);
    }
  }
  for (uint32_t i = 0; i < events_.events().size(); ++i) {
    const Event& event = events_.events()[i];
    if (event.attr.type != kTypeTracepoint) continue;
    const auto it = features_.tracepoint_names.find(event.attr.config);
    if (it != features_.tracepoint_names.end() && event.name == AttrName(event.attr)) {
      events_.SetEventName(i, it->second);
    }
  }
}

void StreamReader::TakeUp(const RawRecord& raw, RecordSink& sink) {
  switch (raw.record_type()) {
    case RecordType::kHeaderTracingData:
      sink.BeforeTakeUp();
      TakeFeature(static_cast<uint64_t>(Feature::kTracingData), raw.extra);
      TakeNames();
      return;
    case RecordType::kHeaderAttr:
    case RecordType::kHeaderEventType:
    case RecordType::kEventUpdate:
    case RecordType::kHeaderFeature:
      break;
    default:
      return;
  }
  const Result<Record> record = DecodeRecord(raw, {header_.endian, nullptr});
  if (!record) {
    counters_.Add("perfdata.bad_record");
    return;
  }
  sink.BeforeTakeUp();
  TakeUpDecoded(*record);
}

void StreamReader::TakeUpDecoded(const Record& record) {
  if (const auto* header_attr = std::get_if<HeaderAttr>(&record.body)) {
    TakeAttr(*header_attr);
  } else if (const auto* type = std::get_if<HeaderEventType>(&record.body)) {
    for (uint32_t i = 0; i < events_.events().size(); ++i) {
      if (events_.events()[i].attr.config == type->id) events_.SetEventName(i, type->name);
    }
  } else if (const auto* update = std::get_if<EventUpdate>(&record.body)) {
    constexpr uint64_t kUpdateName = 2;
    if (update->type == kUpdateName) events_.SetName(update->id, update->text);
    if (update->type == kUpdateFeature) TakeFeatureUpdate(*update);
  } else if (const auto* feature = std::get_if<HeaderFeature>(&record.body)) {
    // The one that ends the list has no content, and a number that depends on perf's version.
    const bool is_flag = feature->feature == static_cast<uint64_t>(Feature::kBranchStack) ||
                         feature->feature == static_cast<uint64_t>(Feature::kStat);
    if (feature->bytes.empty() && !is_flag) return;
    TakeFeature(feature->feature, feature->bytes);
    TakeNames();
  }
}

// What lies behind the data is newer.
void StreamReader::TakeFeatureUpdate(const EventUpdate& update) {
  if (!header_.is_pipe() && !unfinished()) return;
  const auto feature = FeatureOf(update, header_.endian);
  if (!feature) {
    counters_.Add("perfdata.bad_feature");
    return;
  }
  TakeFeature(feature->first, feature->second);
  TakeNames();
}

// All events come before the first record of one: which event a record is of, and where its time
// is, must not depend on how far a reader has got.
void StreamReader::TakeAttr(const HeaderAttr& header_attr) {
  const bool has_attrs_already = !header_.is_pipe() && header_.attrs.size > 0;
  if (has_attrs_already) return;
  if (has_kernel_records_) return counters_.Add("perfdata.bad_attr");
  events_.Add({header_attr.attr, header_attr.ids, ""});
  TakeNames();
}

// Of the data, where the parts of a directory are behind it.
ReadEnd StreamReader::End() const {
  ReadEnd end = tokenizer_->end();
  end.unfinished = unfinished();
  const bool whole = header_.is_pipe() || unfinished() || stream_->offset() >= data_end();
  if (end.complete && !whole) {
    end.complete = false;
    end.damage =
        Error(ErrorKind::kDamaged,
              fmt::format("the file is cut off: its data should reach to {:#x}", data_end()))
            .AtOffset(stream_->offset());
  }
  if (end.damage) end.damage->file = source_.name();
  if (!merger_) return end;
  const ReadEnd parts = merger_->end();
  end.records += parts.records;
  end.bytes += parts.bytes;
  end.compressed_bytes += parts.compressed_bytes;
  end.decompressed_bytes += parts.decompressed_bytes;
  end.complete = end.complete && parts.complete;
  if (!end.damage) end.damage = parts.damage;
  return end;
}

Result<bool> StreamReader::NextOfParts(RawRecord& record) {
  if (!merger_) {
    merger_.emplace(events_, header_.endian, counters_);
    for (FileSource* part : parts_) TRY(merger_->Add(*part));
  }
  return merger_->Next(record);
}

Result<bool> StreamReader::ReadNext(RawRecord& record, RecordSink& sink) {
  if (!tokenizer_) tokenizer_.emplace(*stream_, header_.endian, counters_);
  if (!data_was_read_) {
    TRY_ASSIGN(const bool more, tokenizer_->Next(record));
    if (more && record.type >= static_cast<uint32_t>(RecordType::kHeaderAttr)) {
      TakeUp(record, sink);
    } else if (more) {
      has_kernel_records_ = true;
    }
    if (more) return true;
    data_was_read_ = true;
  }
  return parts_.empty() ? Result<bool>(false) : NextOfParts(record);
}

Result<bool> StreamReader::Next(RawRecord& record) {
  class NoSink : public RecordSink {
    Status OnRecord(const RawRecord& /*raw*/) override { return {}; }
  } nobody;
  return ReadNext(record, nobody);
}

Result<ReadEnd> StreamReader::ReadAll(RecordSink& sink) {
  if (tokenizer_) return Fail(ErrorKind::kUsage, "a reader reads once");
  RawRecord record;
  for (;;) {
    TRY_ASSIGN(const bool more, ReadNext(record, sink));
    if (!more) break;
    TRY(sink.OnRecord(record));
  }
  ReadEnd end = End();
  if (end.complete && !header_.is_pipe() && !unfinished() && !source_.size()) {
    sink.BeforeTakeUp();
    TRY(ReadTail());
  }
  return end;
}

}  // namespace

Result<std::unique_ptr<Reader>> Reader::Open(FileSource& source) {
  return OpenDirectory(source, {});
}

Result<std::unique_ptr<Reader>> Reader::OpenDirectory(FileSource& data,
                                                      std::vector<FileSource*> parts) {
  auto reader = std::make_unique<StreamReader>(data, std::move(parts));
  if (Status read = reader->ReadHeaders(); !read) {
    if (read.error().file.empty()) read.error().file = data.name();
    return Fail(std::move(read.error()));
  }
  return reader;
}

}  // namespace stackreel::perfdata
