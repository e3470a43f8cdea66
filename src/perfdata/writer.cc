#include "perfdata/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/byte_writer.h"
#include "perfdata/compressor.h"
#include "perfdata/header.h"
#include "perfdata/record_size.h"
#include "perfdata/sample_layout.h"

namespace stackreel::perfdata {
namespace {

using FeatureBytes = std::map<uint32_t, std::vector<uint8_t>>;

// What is gathered before it is written out.
constexpr size_t kBufferSize = size_t{256} << 10;
// perf 6.1 takes what lies behind its own attr, of 128 bytes, for the ids of a HEADER_ATTR record,
// whatever size the attr says it has: with a smaller one it takes ids for fields, and crashes.
constexpr uint32_t kPipeAttrSize = 128;
// Features from here up are not perf's.
constexpr uint32_t kFirstForeignFeature = 128;

constexpr uint32_t Number(Feature feature) { return static_cast<uint32_t>(feature); }

class StreamWriter : public Writer {
 public:
  StreamWriter(ByteSink& sink, const WriterOptions& options, std::vector<Event> events)
      : sink_(sink),
        options_(options),
        buffer_(options.endian),
        sample_bytes_(options.endian),
        events_(std::move(events)) {
    for (const Event& event : events_) table_.Add(event);
  }
  Status Begin();

  Status WriteRecord(const Record& record) override;
  Status WriteSample(const Sample& sample, uint16_t misc, uint32_t event) override;
  Status WriteEncoded(ByteView record) override;
  Status Flush() override;
  Status EndRecords() override;
  Status Finish(const FeatureBytes& features) override;
  Result<bool> WriteFeature(uint32_t feature, ByteView bytes) override;
  Status WriteEarlyFeatures(const FeatureBytes& features) override;
  [[nodiscard]] uint64_t bytes_written() const override { return written_ + buffer_.size(); }
  [[nodiscard]] uint64_t bytes_before_compression() const override { return kernel_bytes_; }
  [[nodiscard]] const Counters& counters() const override { return counters_; }

 private:
  [[nodiscard]] bool is_pipe() const { return options_.container == Container::kPipe; }
  Status BeginFile();
  Status BeginPipe();
  // Writes the compressed form of the kernel records gathered.
  Status Pack(bool end_frame = false);
  Status WriteBuffer();
  Status CheckWhole(ByteView record) const;
  [[nodiscard]] FeatureBytes Complete(const FeatureBytes& features) const;
  [[nodiscard]] std::vector<uint8_t> CompressedFeature() const;
  Status FinishFile(const FeatureBytes& features);
  Status FinishPipe(const FeatureBytes& features);
  Status WritePipeFeature(uint32_t feature, ByteView bytes);
  Status WriteTracingData(ByteView bytes);
  Status WriteBuildIds(ByteView bytes);

  ByteSink& sink_;
  WriterOptions options_;
  FileHeader header_;
  ByteWriter buffer_;
  ByteWriter sample_bytes_;              // of the sample being written; stays allocated
  std::vector<uint8_t> kernel_records_;  // gathered for compression
  std::unique_ptr<Compressor> compressor_;
  std::vector<Event> events_;
  EventTable table_;
  Counters counters_;
  std::set<uint32_t> features_written_;  // pipe mode
  bool early_features_ = false;
  bool finished_ = false;
  uint64_t written_ = 0;
  uint64_t kernel_bytes_ = 0;
};

Status StreamWriter::Begin() {
  if (options_.compression_level != 0) {
    TRY_ASSIGN(compressor_, Compressor::Create(options_.compression_level));
  }
  header_.endian = options_.endian;
  return is_pipe() ? BeginPipe() : BeginFile();
}

// header | ids of each event | attrs | data …
// data.size stays 0 until Finish, which readers take for "up to the end of the file".
Status StreamWriter::BeginFile() {
  uint32_t attr_size = 64;
  for (const Event& event : events_) {
    attr_size = std::max(attr_size, SmallestAttrSize(event.attr));
  }
  uint64_t ids_end = kFileHeaderSize;
  for (const Event& event : events_) ids_end += 8 * event.ids.size();
  header_.attr_size = attr_size + 16;
  header_.attrs = {ids_end, events_.size() * header_.attr_size};
  header_.data = {header_.attrs.offset + header_.attrs.size, 0};

  buffer_.Bytes(EncodeHeader(header_));
  for (const Event& event : events_) {
    for (const uint64_t id : event.ids) buffer_.U64(id);
  }
  uint64_t ids_at = kFileHeaderSize;
  for (const Event& event : events_) {
    buffer_.Bytes(EncodeAttrSized(event.attr, options_.endian, attr_size));
    buffer_.U64(ids_at);
    buffer_.U64(8 * event.ids.size());
    ids_at += 8 * event.ids.size();
  }
  return WriteBuffer();
}

// header | HEADER_ATTR of each event | EVENT_UPDATE with its name
// perf does not take a pipe's names from EVENT_DESC.
Status StreamWriter::BeginPipe() {
  header_.size = kPipeHeaderSize;
  buffer_.Bytes(EncodeHeader(header_));
  for (const Event& event : events_) {
    const uint32_t size = std::max(SmallestAttrSize(event.attr), kPipeAttrSize);
    const size_t start = buffer_.size();
    buffer_.U32(static_cast<uint32_t>(RecordType::kHeaderAttr));
    buffer_.U16(0);
    buffer_.U16(0);
    buffer_.Bytes(EncodeAttrSized(event.attr, options_.endian, size));
    for (const uint64_t id : event.ids) buffer_.U64(id);
    if (buffer_.size() - start > kMaxRecordSize) {
      return Fail(
          ErrorKind::kUnsupported,
          fmt::format("an event with {} ids does not fit a pipe's record", event.ids.size()));
    }
    buffer_.PutAt(start + 6, static_cast<uint16_t>(buffer_.size() - start));
  }
  for (const Event& event : events_) {
    EventUpdate update;
    update.type = 2;  // name
    update.text = event.name;
    if (!event.ids.empty()) update.id = event.ids.front();
    // Id 0 is the first event.
    if (event.name.empty() || (event.ids.empty() && &event != &events_.front())) continue;
    Record record;
    record.type = static_cast<uint32_t>(RecordType::kEventUpdate);
    record.body = std::move(update);
    TRY(WriteRecord(record));
  }
  return WriteBuffer();
}

Status StreamWriter::WriteRecord(const Record& record) {
  const std::optional<uint32_t> event = table_.IndexOf(record.sample_id ? record.sample_id->id : 0);
  const Attr* attr = event ? &events_[*event].attr : nullptr;
  TRY_ASSIGN(const std::vector<uint8_t> bytes, EncodeRecord(record, {options_.endian, attr}));
  return WriteEncoded(bytes);
}

Status StreamWriter::WriteSample(const Sample& sample, uint16_t misc, uint32_t event) {
  if (event >= events_.size()) {
    return Fail(ErrorKind::kUsage, fmt::format("no event {}: there are {}", event, events_.size()));
  }
  sample_bytes_.Clear();
  TRY(EncodeSampleInto(sample_bytes_, sample, misc, events_[event].attr));
  return WriteEncoded(sample_bytes_.view());
}

// A record must be as long as it says, with what follows it outside header.size.
Status StreamWriter::CheckWhole(ByteView record) const {
  if (record.size() < kRecordHeaderSize) {
    return Fail(ErrorKind::kUsage, "a record is shorter than its header");
  }
  const auto type = LoadUnaligned<uint32_t>(record.data(), options_.endian);
  uint64_t size = LoadUnaligned<uint16_t>(record.data() + 6, options_.endian);
  const uint8_t* payload = record.data() + kRecordHeaderSize;
  if (type == static_cast<uint32_t>(RecordType::kHeaderTracingData) && record.size() >= 12) {
    size += AlignTo8(LoadUnaligned<uint32_t>(payload, options_.endian));
  } else if (type == static_cast<uint32_t>(RecordType::kAuxtrace) && record.size() >= 16) {
    size += LoadUnaligned<uint64_t>(payload, options_.endian);
  }
  if (size != record.size()) {
    return Fail(ErrorKind::kUsage, fmt::format("a {} record of {} bytes says it has {}",
                                               RecordTypeName(type), record.size(), size));
  }
  return {};
}

Status StreamWriter::WriteEncoded(ByteView record) {
  if (finished_) return Fail(ErrorKind::kUsage, "the recording is finished already");
  TRY(CheckWhole(record));
  const auto type = LoadUnaligned<uint32_t>(record.data(), options_.endian);
  if (type < static_cast<uint32_t>(RecordType::kHeaderAttr)) {
    if (is_pipe() && !early_features_) TRY(WriteEarlyFeatures({}));
    kernel_bytes_ += record.size();
    if (compressor_ != nullptr) {
      kernel_records_.insert(kernel_records_.end(), record.begin(), record.end());
      return kernel_records_.size() >= Compressor::kChunk ? Pack() : Status();
    }
  } else {
    TRY(Pack());
  }
  buffer_.Bytes(record);
  if (type == static_cast<uint32_t>(RecordType::kFinishedRound)) return Flush();
  return buffer_.size() >= kBufferSize ? WriteBuffer() : Status();
}

Status StreamWriter::Pack(bool end_frame) {
  if (kernel_records_.empty()) return {};
  TRY(compressor_->Compress(kernel_records_, end_frame, buffer_));
  kernel_records_.clear();
  return buffer_.size() >= kBufferSize ? WriteBuffer() : Status();
}

Status StreamWriter::WriteBuffer() {
  TRY(sink_.Write(buffer_.view()));
  written_ += buffer_.size();
  buffer_.Clear();
  return {};
}

Status StreamWriter::Flush() {
  TRY(Pack());
  return buffer_.size() == 0 ? Status() : WriteBuffer();
}

// u32 version, type (1: zstd), level, ratio, mmap_len: the most one COMPRESSED record unpacks to.
std::vector<uint8_t> StreamWriter::CompressedFeature() const {
  constexpr uint32_t kZstd = 1;
  const uint64_t packed = compressor_->bytes_out();
  const uint64_t ratio = packed == 0 ? 0 : (compressor_->bytes_in() + packed / 2) / packed;
  ByteWriter out(options_.endian);
  out.U32(0);
  out.U32(kZstd);
  out.U32(static_cast<uint32_t>(options_.compression_level));
  out.U32(static_cast<uint32_t>(ratio));
  out.U32(uint32_t{2} * 65536);
  return out.Take();
}

// The features as they must be for this file, whatever file they come from.
FeatureBytes StreamWriter::Complete(const FeatureBytes& features) const {
  FeatureBytes complete = features;
  if (!events_.empty() && !complete.contains(Number(Feature::kEventDesc))) {
    complete[Number(Feature::kEventDesc)] = EncodeEventDesc(events_, options_.endian);
  }
  complete.erase(Number(Feature::kCompressed));
  complete.erase(Number(Feature::kDirFormat));
  if (compressor_ != nullptr) complete[Number(Feature::kCompressed)] = CompressedFeature();
  return complete;
}

Status StreamWriter::Finish(const FeatureBytes& features) {
  if (finished_) return Fail(ErrorKind::kUsage, "the recording is finished already");
  TRY(Pack(/*end_frame=*/true));
  TRY(Flush());
  TRY(is_pipe() ? FinishPipe(Complete(features)) : FinishFile(Complete(features)));
  finished_ = true;
  return {};
}

Status StreamWriter::EndRecords() {
  if (compressor_ == nullptr) return {};
  if (kernel_records_.empty() && compressor_->in_frame()) {
    ByteWriter round(options_.endian);
    round.U32(static_cast<uint32_t>(RecordType::kFinishedRound));
    round.U16(0);
    round.U16(kRecordHeaderSize);
    kernel_records_ = round.Take();
  }
  return Pack(/*end_frame=*/true);
}

// data | table of sections | what they hold. The header is written twice, so that it is true at any
// moment: first the data's size without any feature, then with them.
Status StreamWriter::FinishFile(const FeatureBytes& features) {
  if (written_ == header_.data.offset) {
    // A size of 0 would mean that the recording did not end.
    constexpr uint16_t kSize = kRecordHeaderSize;
    buffer_.U32(static_cast<uint32_t>(RecordType::kFinishedRound));
    buffer_.U16(0);
    buffer_.U16(kSize);
    TRY(WriteBuffer());
  }
  header_.data.size = written_ - header_.data.offset;
  TRY(sink_.WriteAt(0, EncodeHeader(header_)));
  uint64_t at = written_ + 16 * features.size();
  for (const auto& [feature, bytes] : features) {
    if (feature >= kFeatureBits) {
      return Fail(ErrorKind::kUsage, fmt::format("no feature can have the number {}", feature));
    }
    buffer_.U64(at);
    buffer_.U64(bytes.size());
    at += bytes.size();
    header_.SetFeature(feature);
  }
  for (const auto& [feature, bytes] : features) buffer_.Bytes(bytes);
  TRY(WriteBuffer());
  return sink_.WriteAt(0, EncodeHeader(header_));
}

Result<bool> StreamWriter::WriteFeature(uint32_t feature, ByteView bytes) {
  constexpr size_t kMaxFeature = 65000;
  if (bytes.size() > kMaxFeature) return false;
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kEventUpdate);
  record.body = MakeFeatureUpdate(feature, bytes, options_.endian);
  TRY(WriteRecord(record));
  return true;
}

Status StreamWriter::WriteEarlyFeatures(const FeatureBytes& features) {
  if (!is_pipe()) return {};
  early_features_ = true;
  return FinishPipe(Complete(features));
}

Status StreamWriter::FinishPipe(const FeatureBytes& features) {
  for (const auto& [feature, bytes] : features) {
    // Binaries may be found until the end, and what is ours changes; all else was true at the
    // start.
    const bool changes = feature == Number(Feature::kBuildId) || feature >= kFirstForeignFeature;
    if (!features_written_.insert(feature).second && !changes) continue;
    TRY(WritePipeFeature(feature, bytes));
  }
  return Flush();
}

// In a pipe most features are HEADER_FEATURE records; TRACING_DATA and BUILD_ID have their own.
Status StreamWriter::WritePipeFeature(uint32_t feature, ByteView bytes) {
  if (feature == Number(Feature::kTracingData)) return WriteTracingData(bytes);
  if (feature == Number(Feature::kBuildId)) return WriteBuildIds(bytes);
  // Not padded: perf takes what is behind an old CPU_TOPOLOGY for the newer one's content.
  const size_t size = kRecordHeaderSize + 8 + bytes.size();
  // perf report ends at a HEADER_FEATURE that is not one of its own.
  const bool is_foreign = feature >= kFirstForeignFeature;
  if (is_foreign) {
    TRY_ASSIGN(const bool written, WriteFeature(feature, bytes));
    if (written) return {};
  }
  if (is_foreign || feature == Number(Feature::kAuxtrace) || size > kMaxRecordSize) {
    counters_.Add("perfdata.feature_not_for_pipes");
    return {};
  }
  ByteWriter record(options_.endian);
  record.U32(static_cast<uint32_t>(RecordType::kHeaderFeature));
  record.U16(0);
  record.U16(static_cast<uint16_t>(size));
  record.U64(feature);
  record.Bytes(bytes);
  return WriteEncoded(record.view());
}

// Its size is that with the padding.
Status StreamWriter::WriteTracingData(ByteView bytes) {
  ByteWriter record(options_.endian);
  record.U32(static_cast<uint32_t>(RecordType::kHeaderTracingData));
  record.U16(0);
  record.U16(kRecordHeaderSize + 4);
  const uint64_t padded_size = AlignTo8(bytes.size());
  record.U32(static_cast<uint32_t>(padded_size));
  record.Bytes(bytes);
  record.Zeros(padded_size - bytes.size());
  return WriteEncoded(record.view());
}

// The section is a row of HEADER_BUILD_ID records whose type may be 0.
Status StreamWriter::WriteBuildIds(ByteView bytes) {
  while (bytes.size() >= kRecordHeaderSize) {
    const auto size = LoadUnaligned<uint16_t>(bytes.data() + 6, options_.endian);
    if (size < kRecordHeaderSize || size > bytes.size()) break;
    ByteWriter record(options_.endian);
    record.Bytes(bytes.first(size));
    record.PutAt(0, static_cast<uint32_t>(RecordType::kHeaderBuildId));
    TRY(WriteEncoded(record.view()));
    bytes = bytes.subspan(size);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::Create(ByteSink& sink, const WriterOptions& options,
                                               std::vector<Event> events) {
  auto writer = std::make_unique<StreamWriter>(sink, options, std::move(events));
  TRY(writer->Begin());
  return writer;
}

}  // namespace stackreel::perfdata
