// For tests: recordings in memory, made by the Writer, and what they are after anonymising.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "anonymize/anonymize.h"
#include "base/memory_io.h"
#include "perfdata/sorter.h"
#include "perfdata/writer.h"

namespace stackreel::anonymize::fake {

using Bytes = std::vector<uint8_t>;

inline Key SomeKey() { return *Key::FromSecret(AsBytes("a secret of 20 bytes")); }

inline perfdata::Event SomeEvent(uint64_t sample_type, uint64_t id = 100) {
  perfdata::Event event;
  event.attr.type = perfdata::kTypeSoftware;
  event.attr.sample_type = sample_type | perfdata::kSampleIdentifier | perfdata::kSampleTid |
                           perfdata::kSampleTime | perfdata::kSampleIp;
  event.attr.flags = perfdata::kAttrSampleIdAll | perfdata::kAttrMmap | perfdata::kAttrComm |
                     perfdata::kAttrPtrAuth;
  event.ids = {id};
  event.name = "cpu-clock";
  return event;
}

// Puts a recording together; each record gets the next nanosecond.
class Recording {
 public:
  explicit Recording(std::vector<perfdata::Event> events, perfdata::WriterOptions options = {})
      : events_(std::move(events)),
        endian_(options.endian),
        sink_(std::make_unique<MemorySink>(options.container == perfdata::Container::kFile)) {
    writer_ = *perfdata::Writer::Create(*sink_, options, events_);
  }
  template <typename Body>
  void Add(perfdata::RecordType type, Body body, uint16_t misc = 2, uint32_t pid = 0) {
    perfdata::Record record{static_cast<uint32_t>(type), misc, std::move(body), {}};
    record.sample_id.emplace();
    record.sample_id->pid = record.sample_id->tid = pid;
    record.sample_id->time = ++time_;
    record.sample_id->id = events_.front().ids.front();
    EXPECT_TRUE(writer_->WriteRecord(record));
  }
  void Map(uint32_t pid, uint64_t addr, uint64_t len, uint64_t pgoff, const std::string& name,
           uint16_t misc = 2) {
    Add(perfdata::RecordType::kMmap2,
        perfdata::Mmap2{pid, pid, addr, len, pgoff, 8, 1, 99, 7, {}, 5, 2, name}, misc);
  }
  void MapKernel(uint64_t addr, uint64_t len, uint64_t pgoff, const std::string& name) {
    Add(perfdata::RecordType::kMmap, perfdata::Mmap{UINT32_MAX, 0, addr, len, pgoff, name}, 1);
  }
  void Exec(uint32_t pid) {
    Add(perfdata::RecordType::kComm, perfdata::Comm{pid, pid, "prog"}, perfdata::kMiscCommExec);
  }
  void Fork(uint32_t parent, uint32_t child, uint16_t misc = 0) {
    Add(perfdata::RecordType::kFork, perfdata::Task{child, parent, child, parent, time_ + 1}, misc);
  }
  // A record as it is, whatever that is.
  void AddBytes(ByteView record) { EXPECT_TRUE(writer_->WriteEncoded(record)); }
  void AddSample(perfdata::Sample sample, uint16_t misc = 2, uint32_t event = 0) {
    sample.id = events_[event].ids.front();
    sample.time = ++time_;
    EXPECT_TRUE(writer_->WriteSample(sample, misc, event));
  }
  void SampleAt(uint32_t pid, uint64_t ip, uint16_t misc = 2) {
    perfdata::Sample sample;
    sample.pid = sample.tid = pid;
    sample.ip = ip;
    AddSample(sample, misc);
  }
  Bytes FinishWithoutFeatures() {
    EXPECT_TRUE(writer_->Finish({}));
    return sink_->bytes();
  }
  // Of an x86-64 machine, unless the features say else.
  Bytes Finish(std::map<uint32_t, Bytes> features = {}) {
    features.try_emplace(static_cast<uint32_t>(perfdata::Feature::kArch),
                         perfdata::EncodeString("x86_64", endian_));
    EXPECT_TRUE(writer_->Finish(features));
    return sink_->bytes();
  }

 private:
  std::vector<perfdata::Event> events_;
  Endian endian_;
  std::unique_ptr<MemorySink> sink_;
  std::unique_ptr<perfdata::Writer> writer_;
  uint64_t time_ = 0;
};

// A recording, read whole. What the samples point into stays with it.
struct Read : perfdata::TimedSink {
  explicit Read(const Bytes& bytes) : bytes_(bytes), source_(bytes_) {
    reader = *perfdata::Reader::Open(source_);
    Counters counters;
    perfdata::RoundSorter sorter(*reader, *this, counters);
    const auto end = reader->ReadAll(sorter);
    EXPECT_TRUE(end && end->complete);
    EXPECT_TRUE(sorter.Finish());
  }
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override {
    const perfdata::Attr* attr =
        timed.event ? &reader->events().events()[*timed.event].attr : nullptr;
    if (timed.raw.record_type() == perfdata::RecordType::kSample) {
      blocks_.push_back(timed.raw.block);
      EXPECT_TRUE(
          perfdata::DecodeSample(timed.raw, *attr, reader->endian(), samples.emplace_back()));
    } else {
      records.push_back(*perfdata::DecodeRecord(timed.raw, {reader->endian(), attr}));
    }
    return {};
  }
  template <typename Body>
  [[nodiscard]] std::vector<Body> All() const {
    std::vector<Body> all;
    for (const perfdata::Record& record : records) {
      if (const auto* body = std::get_if<Body>(&record.body)) all.push_back(*body);
    }
    return all;
  }

  std::unique_ptr<perfdata::Reader> reader;
  std::vector<perfdata::Record> records;
  std::vector<perfdata::Sample> samples;

 private:
  Bytes bytes_;
  MemorySource source_;
  std::vector<perfdata::BlockPtr> blocks_;
};

inline Bytes AnonymizedBytes(const Bytes& bytes, const Options& options = {},
                             const Key& key = SomeKey(), Report* report = nullptr) {
  MemorySource source(bytes);
  MemorySink sink(options.container == perfdata::Container::kFile);
  const Result<Outcome> outcome = Anonymize(RereadableRecording(source), sink, key, options);
  EXPECT_TRUE(outcome) << (outcome ? "" : outcome.error().ToString());
  if (outcome && report != nullptr) *report = outcome->report;
  return sink.bytes();
}
inline Read Anonymized(const Bytes& bytes, const Options& options = {}, Report* report = nullptr) {
  return Read(AnonymizedBytes(bytes, options, SomeKey(), report));
}

}  // namespace stackreel::anonymize::fake
