#include "perfdata/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "perfdata/compressor.h"
#include "perfdata/decompressor.h"
#include "perfdata/header.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using synthetic::Bytes;
using synthetic::CommBytes;
using synthetic::Join;
using synthetic::KeepingSink;
using synthetic::Numbers;
using synthetic::RecordBytes;
using synthetic::RoundBytes;
using synthetic::SampleBytes;
using synthetic::StringBytes;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

constexpr uint32_t Number(Feature feature) { return static_cast<uint32_t>(feature); }

Event MakeEvent(uint64_t config, std::vector<uint64_t> ids, std::string name) {
  Event event;
  event.attr.type = kTypeSoftware;
  event.attr.config = config;
  event.attr.sample_type = synthetic::kSampleType;
  event.attr.flags = kAttrSampleIdAll;
  event.ids = std::move(ids);
  event.name = std::move(name);
  return event;
}

std::vector<Event> WrittenEvents() {
  return {MakeEvent(0, {100, 102}, "first"), MakeEvent(1, {101}, "second")};
}

struct ReadBack {
  std::unique_ptr<MemorySource> source;
  std::unique_ptr<Reader> reader;
  KeepingSink sink;
  ReadEnd end;
};

ReadBack Reread(const Bytes& bytes, bool seekable = true) {
  ReadBack reading;
  reading.source = std::make_unique<MemorySource>(bytes, seekable);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(*reading.source);
  EXPECT_TRUE(reader) << reader.error().ToString();
  if (!reader) return reading;
  reading.reader = std::move(*reader);
  Result<ReadEnd> end = reading.reader->ReadAll(reading.sink);
  EXPECT_TRUE(end) << end.error().ToString();
  if (end) reading.end = *end;
  return reading;
}

// Kernel records, with rounds between, in `endian`.
std::vector<Bytes> SomeRecords(Endian endian = Endian::kLittle) {
  std::vector<Bytes> records = {CommBytes("prog", 100, 1, endian)};
  for (uint64_t i = 0; i < 5000; ++i) {
    records.push_back(SampleBytes(100 + i % 2, 10 + i, endian));
    if (i % 1000 == 999) {
      records.push_back(RecordBytes(RecordType::kFinishedRound, {}, 0, endian));
    }
  }
  records.push_back(RecordBytes(RecordType::kSample, Bytes(65520, 0x55), 2, endian));
  return records;
}

Bytes Write(const WriterOptions& options, const std::vector<Bytes>& records,
            const std::map<uint32_t, Bytes>& features = {}) {
  MemorySink sink(options.container == Container::kFile);
  Result<std::unique_ptr<Writer>> writer = Writer::Create(sink, options, WrittenEvents());
  EXPECT_TRUE(writer);
  EXPECT_TRUE((*writer)->WriteEarlyFeatures(features));
  for (const Bytes& record : records) EXPECT_TRUE((*writer)->WriteEncoded(record));
  EXPECT_TRUE((*writer)->Finish(features));
  EXPECT_EQ((*writer)->bytes_written(), sink.bytes().size());
  return sink.bytes();
}

TEST(WriterTest, WritesWhatTheReaderReads) {
  for (const Container container : {Container::kFile, Container::kPipe}) {
    for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
      for (const int level : {0, 1, 19}) {
        const std::vector<Bytes> records = SomeRecords(endian);
        const Bytes bytes = Write({container, endian, level}, records,
                                  {{Number(Feature::kHostname), StringBytes("host", endian)}});
        const ReadBack reading = Reread(bytes, container == Container::kFile);
        EXPECT_TRUE(reading.end.complete);
        EXPECT_FALSE(reading.end.unfinished);
        EXPECT_EQ(reading.reader->container(), container);
        EXPECT_EQ(reading.reader->endian(), endian);
        EXPECT_EQ(reading.reader->features().hostname, "host");
        const std::vector<Event>& events = reading.reader->events().events();
        ASSERT_EQ(events.size(), 2u);
        EXPECT_THAT(events[0].ids, ElementsAre(100, 102));
        EXPECT_EQ(events[1].name, "second");
        EXPECT_EQ(events[1].attr.config, 1u);
        // A pipe has records for events and features in front.
        KeepingSink of_data;
        for (const RawRecord& raw : reading.sink.records) {
          const bool is_preamble = raw.type >= 64 && raw.type != 68;
          EXPECT_TRUE(container == Container::kPipe || !is_preamble);
          if (!is_preamble) of_data.records.push_back(raw);
        }
        EXPECT_TRUE(of_data.bytes() == Join(records));
        EXPECT_EQ(reading.end.decompressed_bytes > 0, level != 0);
        EXPECT_EQ(reading.reader->features().compressed.has_value(), level != 0);
      }
    }
  }
}

TEST(WriterTest, EncodesRecordsAndSamplesForTheirEvent) {
  MemorySink sink;
  std::vector<Event> events = WrittenEvents();
  events[1].attr.sample_type |= kSampleAddr;
  Result<std::unique_ptr<Writer>> writer =
      Writer::Create(sink, {Container::kFile, Endian::kLittle, 0}, events);
  ASSERT_TRUE(writer);
  Sample sample;
  sample.id = 101;
  sample.tid = 7;
  sample.time = 55;
  sample.addr = 0xabc;
  ASSERT_TRUE((*writer)->WriteSample(sample, 2, 1));
  EXPECT_FALSE((*writer)->WriteSample(sample, 2, 2));  // no such event
  Record record;
  record.type = static_cast<uint32_t>(RecordType::kLost);
  record.body = Lost{101, 3};
  record.sample_id = SampleId{};
  record.sample_id->id = 101;
  record.sample_id->time = 56;
  ASSERT_TRUE((*writer)->WriteRecord(record));
  ASSERT_TRUE((*writer)->Finish({}));
  const ReadBack reading = Reread(sink.bytes());
  ASSERT_THAT(reading.sink.types(), ElementsAre(9, 2));
  const EventTable& table = reading.reader->events();
  EXPECT_EQ(table.IndexOf(reading.sink.records[0], Endian::kLittle), 1u);
  EXPECT_EQ(table.TimeOf(reading.sink.records[0], Endian::kLittle), 55u);
  EXPECT_EQ(table.TimeOf(reading.sink.records[1], Endian::kLittle), 56u);
  Sample read;
  ASSERT_TRUE(DecodeSample(reading.sink.records[0], table.events()[1].attr, Endian::kLittle, read));
  EXPECT_EQ(read.addr, 0xabcu);
}

TEST(WriterTest, UsesTheSmallestAttrThatHoldsAllEvents) {
  std::vector<Event> events = WrittenEvents();
  for (const auto& [config3, size] : {std::pair<uint64_t, uint64_t>{0, 64}, {5, 136}}) {
    events[1].attr.config3 = config3;
    MemorySink sink;
    ASSERT_TRUE(Writer::Create(sink, {Container::kFile, Endian::kLittle, 0}, events));
    EXPECT_EQ(ParseHeader(sink.bytes())->attr_size, size + 16);
  }
}

// What a sink was told, to see the file at each moment.
class RecordingSink : public ByteSink {
 public:
  Status Write(ByteView bytes) override {
    steps.push_back({std::nullopt, {bytes.begin(), bytes.end()}});
    return {};
  }
  Status WriteAt(uint64_t offset, ByteView bytes) override {
    steps.push_back({offset, {bytes.begin(), bytes.end()}});
    return {};
  }
  struct Step {
    std::optional<uint64_t> offset;
    Bytes bytes;
  };
  std::vector<Step> steps;
};

TEST(WriterTest, LeavesAReadableFileWheneverItIsKilled) {
  for (const int level : {0, 1}) {
    RecordingSink sink;
    Result<std::unique_ptr<Writer>> writer =
        Writer::Create(sink, {Container::kFile, Endian::kLittle, level}, WrittenEvents());
    ASSERT_TRUE(writer);
    const std::vector<Bytes> records = SomeRecords();
    for (const Bytes& record : records) ASSERT_TRUE((*writer)->WriteEncoded(record));
    ASSERT_TRUE((*writer)->Finish({{Number(Feature::kHostname), StringBytes("host")}}));

    const Bytes all = Join(records);
    Bytes file;
    size_t most = 0;
    for (const RecordingSink::Step& step : sink.steps) {
      // Killed before the step, or in the middle of it where it appends.
      const size_t cut = step.offset ? 0 : step.bytes.size() / 2;
      for (const size_t size : {cut, step.bytes.size()}) {
        Bytes now = file;
        const size_t at = step.offset.value_or(now.size());
        now.resize(std::max(now.size(), at + size));
        std::copy_n(step.bytes.begin(), size, now.begin() + static_cast<std::ptrdiff_t>(at));
        if (size == step.bytes.size()) file = now;
        if (file.empty()) continue;  // not even the header
        const ReadBack reading = Reread(now);
        ASSERT_NE(reading.reader, nullptr);
        const Bytes read = reading.sink.bytes();
        EXPECT_TRUE(read.size() <= all.size() && std::equal(read.begin(), read.end(), all.begin()));
        EXPECT_GE(read.size(), most);
        most = read.size();
      }
    }
    EXPECT_EQ(most, all.size());
    EXPECT_EQ(Reread(file).reader->features().hostname, "host");
  }
}

TEST(WriterTest, WritesRoundsOutAtOnceAndBetweenCompressedRecords) {
  MemorySink sink(false);
  Result<std::unique_ptr<Writer>> writer =
      Writer::Create(sink, {Container::kPipe, Endian::kLittle, 1}, WrittenEvents());
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->WriteEncoded(SampleBytes(100, 5)));
  ASSERT_TRUE((*writer)->WriteEncoded(RoundBytes()));
  ReadBack reading = Reread(sink.bytes(), false);
  ASSERT_GE(reading.sink.records.size(), 2u);
  const RawRecord& round = reading.sink.records.back();
  EXPECT_EQ(round.record_type(), RecordType::kFinishedRound);
  EXPECT_FALSE(round.decompressed);
  EXPECT_TRUE(reading.sink.records[reading.sink.records.size() - 2].decompressed);
  // perf must know the sizes before the first compressed record.
  ASSERT_TRUE(reading.reader->features().compressed);
  EXPECT_GE(reading.reader->features().compressed->mmap_len, Compressor::kChunk);
}

TEST(WriterTest, NotesTheRatioReached) {
  std::vector<Bytes> records(1000, RecordBytes(RecordType::kSample, Bytes(32768, 0x11), 2));
  const Bytes bytes = Write({Container::kFile, Endian::kLittle, 1}, records);
  const ReadBack reading = Reread(bytes);
  ASSERT_TRUE(reading.reader->features().compressed);
  const uint64_t ratio = reading.end.decompressed_bytes / reading.end.compressed_bytes;
  EXPECT_GT(ratio, 100u);
  EXPECT_NEAR(reading.reader->features().compressed->ratio, ratio, 1);
}

// Any bit of what is compressed, changed, is noticed: by zstd, or by the checksum.
TEST(WriterTest, ADamagedBitOfCompressedRecordsIsNoticed) {
  MemorySink sink(true);
  auto writer = Writer::Create(sink, {Container::kFile, Endian::kLittle, 1}, WrittenEvents());
  ASSERT_TRUE(writer);
  const size_t start = sink.bytes().size();
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE((*writer)->WriteEncoded(SampleBytes(100, 7919 * i * i)));
    if (i % 20 != 19) continue;
    ASSERT_TRUE((*writer)->WriteEncoded(RoundBytes()));
  }
  ASSERT_TRUE((*writer)->EndRecords());
  ASSERT_TRUE((*writer)->Flush());
  const size_t end_of_rounds = sink.bytes().size();
  ASSERT_TRUE((*writer)->Finish({}));
  const Bytes whole = sink.bytes();
  const ReadBack read_whole = Reread(whole);
  EXPECT_TRUE(read_whole.end.complete);
  size_t payload = 0, noticed = 0;
  for (size_t at = start; at < end_of_rounds;) {
    const auto type = LoadUnaligned<uint32_t>(whole.data() + at, Endian::kLittle);
    const size_t size = LoadUnaligned<uint16_t>(whole.data() + at + 6, Endian::kLittle);
    for (size_t i = at + 8; type == 81 && i < at + size; ++i, ++payload) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        Bytes damaged = whole;
        damaged[i] ^= static_cast<uint8_t>(1U << bit);
        const ReadBack reading = Reread(damaged);
        if (reading.sink.bytes() == read_whole.sink.bytes()) continue;  // a bit without a meaning
        ++noticed;
        ASSERT_FALSE(reading.end.complete) << "bit " << bit << " of byte " << i;
        ASSERT_TRUE(reading.end.damage);
        EXPECT_TRUE(reading.end.damage->offset);
      }
    }
    at += size;
  }
  EXPECT_GT(payload, 100u);
  EXPECT_GT(noticed, 8 * payload - 100);
}

TEST(WriterTest, WhatFollowsADamagedFrameIsReadOn) {
  Bytes noise(1400);
  uint32_t state = 1;
  for (uint8_t& byte : noise)
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  const Bytes record = RecordBytes(RecordType::kSample, Join({Numbers({100}), noise}), 2);
  std::vector<Bytes> records;
  for (int i = 0; i < 4000; ++i) {
    records.push_back(record);
    if (i % 100 == 99) records.push_back(RoundBytes());
  }
  Bytes bytes = Write({Container::kFile, Endian::kLittle, 1}, records);
  const size_t whole = Reread(bytes).sink.records.size();
  // In the noise of the first record: nothing but the checksum tells.
  bytes[1000] ^= 1;
  const ReadBack reading = Reread(bytes);
  EXPECT_FALSE(reading.end.complete);
  EXPECT_GT(reading.sink.records.size(), whole * 3 / 4);
  EXPECT_LT(reading.sink.records.size(), whole);
}

// Each COMPRESSED record must yield something, and no more than mmap_len.
TEST(CompressorTest, MakesRecordsThatUnpackOneByOne) {
  Result<std::unique_ptr<Compressor>> compressor = Compressor::Create(3);
  ASSERT_TRUE(compressor);
  Bytes noise(300000);
  uint32_t state = 1;
  for (uint8_t& byte : noise)
    byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  ByteWriter out(Endian::kLittle);
  ASSERT_TRUE((*compressor)->Compress(noise, false, out));
  const Bytes records = out.Take();
  Decompressor decompressor;
  Bytes unpacked;
  Bytes room(2 * Compressor::kChunk);
  for (ByteView rest = records; !rest.empty();) {
    const auto size = LoadUnaligned<uint16_t>(rest.data() + 6, Endian::kLittle);
    ASSERT_TRUE(decompressor.Feed(rest.subspan(8, size - 8)));
    const Result<size_t> got = decompressor.Read(room);
    ASSERT_TRUE(got);
    EXPECT_GT(*got, 0u);
    EXPECT_LE(*got, Compressor::kChunk);
    unpacked.insert(unpacked.end(), room.data(), room.data() + *got);
    rest = rest.subspan(size);
  }
  EXPECT_TRUE(unpacked == noise);
  EXPECT_FALSE(Compressor::Create(0));
  EXPECT_FALSE(Compressor::Create(1000));
}

TEST(WriterTest, AddsAndDropsFeaturesThatDependOnTheFile) {
  const std::map<uint32_t, Bytes> features = {{Number(Feature::kCompressed), Bytes(20)},
                                              {Number(Feature::kDirFormat), Numbers({1})},
                                              {Number(Feature::kStackreelPacMask), Bytes(32)}};
  const ReadBack file =
      Reread(Write({Container::kFile, Endian::kLittle, 0}, {SampleBytes(100, 5)}, features));
  const auto& raw = file.reader->features().raw;
  EXPECT_THAT(raw, Contains(Key(Number(Feature::kEventDesc))));
  EXPECT_THAT(raw, Contains(Key(Number(Feature::kStackreelPacMask))));
  EXPECT_THAT(raw, Not(Contains(Key(Number(Feature::kCompressed)))));
  EXPECT_THAT(raw, Not(Contains(Key(Number(Feature::kDirFormat)))));
}

TEST(WriterTest, AttrsInAPipeAreAsLargeAsPerfTakesThemToBe) {
  const Bytes bytes = Write({Container::kPipe, Endian::kLittle, 0}, {});
  // header 16 | HEADER_ATTR: header 8 | attr: type 4, size 4 …
  ASSERT_GT(bytes.size(), 32u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(bytes.data() + 16, Endian::kLittle),
            static_cast<uint32_t>(RecordType::kHeaderAttr));
  EXPECT_EQ(LoadUnaligned<uint32_t>(bytes.data() + 28, Endian::kLittle), 128u);
}

TEST(WriterTest, FeaturesAmidTheDataCountUntilThoseBehindItAreWritten) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    MemorySink sink(true);
    auto writer = Writer::Create(sink, {Container::kFile, endian, 0}, WrittenEvents());
    ASSERT_TRUE(writer);
    EXPECT_TRUE(
        (*writer)->WriteFeature(Number(Feature::kHostname), StringBytes("first", endian)).value());
    ASSERT_TRUE((*writer)->WriteEncoded(SomeRecords(endian)[0]));
    EXPECT_TRUE((*writer)
                    ->WriteFeature(Number(Feature::kStackreelStackEnds),
                                   EncodeStackEnds({{"root", 7}}, endian))
                    .value());
    EXPECT_FALSE((*writer)->WriteFeature(Number(Feature::kCmdline), Bytes(70000)).value());
    ASSERT_TRUE((*writer)->Flush());
    const ReadBack killed = Reread(sink.bytes());
    EXPECT_TRUE(killed.end.unfinished);
    EXPECT_EQ(killed.reader->features().hostname, "first");
    EXPECT_THAT(killed.reader->features().stack_ends, ElementsAre(testing::Pair("root", 7)));
    ASSERT_TRUE((*writer)->Finish({{Number(Feature::kHostname), StringBytes("last", endian)}}));
    const ReadBack finished = Reread(sink.bytes());
    EXPECT_EQ(finished.reader->features().hostname, "last");
    EXPECT_TRUE(finished.reader->features().stack_ends.empty());
  }
}

TEST(WriterTest, FeaturesOfOursReachTheReaderOfAPipeAsTheyAreAtTheEnd) {
  MemorySink sink(false);
  auto writer = Writer::Create(sink, {Container::kPipe, Endian::kLittle, 0}, WrittenEvents());
  ASSERT_TRUE(writer);
  const auto ends = [](uint64_t n) { return EncodeStackEnds({{"root", n}}, Endian::kLittle); };
  ASSERT_TRUE((*writer)->WriteEarlyFeatures({{Number(Feature::kStackreelStackEnds), ends(1)}}));
  ASSERT_TRUE((*writer)->WriteEncoded(SomeRecords(Endian::kLittle)[0]));
  ASSERT_TRUE((*writer)->Finish({{Number(Feature::kStackreelStackEnds), ends(9)}}));
  EXPECT_EQ((*writer)->counters().Get("perfdata.feature_not_for_pipes"), 0u);
  const ReadBack reading = Reread(sink.bytes(), false);
  EXPECT_THAT(reading.reader->features().stack_ends, ElementsAre(testing::Pair("root", 9)));
}

TEST(WriterTest, AFeatureRecordCutShortIsCounted) {
  EventUpdate update = MakeFeatureUpdate(201, Bytes(20), Endian::kLittle);
  EXPECT_TRUE(FeatureOf(update, Endian::kLittle));
  update.bytes.resize(24);
  EXPECT_FALSE(FeatureOf(update, Endian::kLittle));
  update = MakeFeatureUpdate(201, Bytes(20), Endian::kLittle);
  update.bytes[0] = 2;  // a version to come
  EXPECT_FALSE(FeatureOf(update, Endian::kLittle));
}

TEST(WriterTest, LeavesOutOfAPipeWhatPerfWouldStopAt) {
  MemorySink sink(false);
  Result<std::unique_ptr<Writer>> writer =
      Writer::Create(sink, {Container::kPipe, Endian::kLittle, 0}, WrittenEvents());
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->WriteEarlyFeatures(
      {{Number(Feature::kAuxtrace), Bytes(32)}, {Number(Feature::kCmdline), Bytes(70000)}}));
  EXPECT_EQ((*writer)->counters().Get("perfdata.feature_not_for_pipes"), 2u);
  ASSERT_TRUE((*writer)->Finish({}));
  const ReadBack reading = Reread(sink.bytes(), false);
  EXPECT_THAT(reading.reader->features().raw, Not(Contains(Key(Number(Feature::kAuxtrace)))));
}

TEST(WriterTest, WritesFeaturesThatHaveRecordsOfTheirOwnInAPipe) {
  const Bytes build_id = RecordBytes(0, Join({Bytes(24, 0xbb), StringBytes("/bin/prog")}), 2);
  const Bytes bytes = Write({Container::kPipe, Endian::kLittle, 0}, {SampleBytes(100, 5)},
                            {{Number(Feature::kTracingData), Bytes(13, 'T')},
                             {Number(Feature::kBuildId), Join({build_id, build_id})}});
  const ReadBack reading = Reread(bytes, false);
  EXPECT_THAT(reading.sink.types(), Contains(66));
  EXPECT_THAT(reading.sink.types(), Contains(67));
  EXPECT_TRUE(reading.end.complete);
  EXPECT_EQ(reading.reader->features().raw.at(Number(Feature::kTracingData)).size(), 16u);
}

TEST(WriterTest, FinishesARecordingWithoutRecords) {
  const ReadBack reading = Reread(Write({Container::kFile, Endian::kLittle, 0}, {}));
  EXPECT_TRUE(reading.end.complete);
  EXPECT_FALSE(reading.end.unfinished);
  EXPECT_EQ(reading.reader->features().event_desc.size(), 2u);
}

TEST(WriterTest, RefusesWhatIsNoWholeRecord) {
  MemorySink sink;
  Result<std::unique_ptr<Writer>> writer =
      Writer::Create(sink, {Container::kFile, Endian::kLittle, 0}, WrittenEvents());
  ASSERT_TRUE(writer);
  EXPECT_FALSE((*writer)->WriteEncoded(Bytes(4)));
  EXPECT_FALSE((*writer)->WriteEncoded(Join({SampleBytes(100, 5), Bytes(8)})));
  // AUXTRACE without what follows it.
  const Bytes auxtrace = RecordBytes(RecordType::kAuxtrace, Numbers({16, 0, 0, 0, 0}));
  EXPECT_FALSE((*writer)->WriteEncoded(auxtrace));
  EXPECT_TRUE((*writer)->WriteEncoded(Join({auxtrace, Bytes(16)})));
  ASSERT_TRUE((*writer)->Finish({}));
  EXPECT_FALSE((*writer)->WriteEncoded(SampleBytes(100, 5)));
  EXPECT_FALSE((*writer)->Finish({}));
  EXPECT_FALSE(Writer::Create(sink, {Container::kFile, Endian::kLittle, 99}, WrittenEvents()));
}

class FullSink : public ByteSink {
 public:
  Status Write(ByteView) override { return Fail(ErrorKind::kIo, "no space left"); }
  Status WriteAt(uint64_t, ByteView) override { return {}; }
};

TEST(WriterTest, ReturnsTheSinksError) {
  FullSink sink;
  const Result<std::unique_ptr<Writer>> writer =
      Writer::Create(sink, {Container::kFile, Endian::kLittle, 0}, WrittenEvents());
  ASSERT_FALSE(writer);
  EXPECT_THAT(writer.error().message, HasSubstr("no space left"));
}

}  // namespace
}  // namespace stackreel::perfdata
