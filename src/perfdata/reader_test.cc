#include "perfdata/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/byte_writer.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using synthetic::AttrBytes;
using synthetic::Bytes;
using synthetic::CommBytes;
using synthetic::FileBytes;
using synthetic::FileParts;
using synthetic::Join;
using synthetic::KeepingSink;
using synthetic::Numbers;
using synthetic::PipeBytes;
using synthetic::RecordBytes;
using synthetic::RoundBytes;
using synthetic::SampleBytes;
using synthetic::StringBytes;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kHostname = static_cast<uint32_t>(Feature::kHostname);

// A reader with what it read.
struct Reading {
  std::unique_ptr<MemorySource> source;
  std::unique_ptr<Reader> reader;
  KeepingSink sink;
  ReadEnd end;
};

// Through a source that gives `chunk` bytes at a time; 0: one that can be sought in.
Reading ReadBytes(const Bytes& bytes, size_t chunk = 0) {
  Reading reading;
  reading.source =
      std::make_unique<MemorySource>(bytes, chunk == 0, chunk == 0 ? SIZE_MAX : chunk, "rec.data");
  Result<std::unique_ptr<Reader>> reader = Reader::Open(*reading.source);
  EXPECT_TRUE(reader) << reader.error().ToString();
  if (!reader) return reading;
  reading.reader = std::move(*reader);
  Result<ReadEnd> end = reading.reader->ReadAll(reading.sink);
  EXPECT_TRUE(end) << end.error().ToString();
  if (end) reading.end = std::move(*end);
  return reading;
}

Error OpenError(const Bytes& bytes, bool seekable = true) {
  MemorySource source(bytes, seekable, SIZE_MAX, "rec.data");
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  EXPECT_FALSE(reader);
  return reader ? Error() : reader.error();
}

FileParts TwoEvents() {
  FileParts parts;
  parts.events = {{AttrBytes(0), {100, 102}}, {AttrBytes(1), {101}}};
  parts.data = Join({CommBytes("prog", 100, 5), SampleBytes(101, 7), SampleBytes(102, 6)});
  parts.features = {{kHostname, StringBytes("host")}};
  return parts;
}

TEST(ReaderTest, ReadsAFileHoweverItComes) {
  const FileParts parts = TwoEvents();
  const Bytes bytes = FileBytes(parts);
  for (const size_t chunk : {0, 1, 7, 100000}) {
    const Reading reading = ReadBytes(bytes, chunk);
    EXPECT_EQ(reading.reader->container(), Container::kFile);
    EXPECT_EQ(reading.sink.bytes(), parts.data) << chunk;
    EXPECT_TRUE(reading.end.complete);
    EXPECT_FALSE(reading.end.unfinished);
    EXPECT_EQ(reading.end.records, 3u);
    EXPECT_EQ(reading.end.bytes, parts.data.size());
    EXPECT_EQ(reading.reader->features().hostname, "host");
    const EventTable& events = reading.reader->events();
    ASSERT_EQ(events.events().size(), 2u);
    EXPECT_THAT(events.events()[0].ids, ElementsAre(100, 102));
    EXPECT_EQ(events.IndexOf(reading.sink.records[0], Endian::kLittle), 0u);
    EXPECT_EQ(events.IndexOf(reading.sink.records[1], Endian::kLittle), 1u);
    EXPECT_EQ(events.TimeOf(reading.sink.records[0], Endian::kLittle), 5u);
    EXPECT_EQ(events.TimeOf(reading.sink.records[1], Endian::kLittle), 7u);
  }
}

TEST(ReaderTest, ReadsAPipeHoweverItComes) {
  const Bytes records = Join({CommBytes("prog", 100, 5), SampleBytes(100, 7)});
  for (const size_t chunk : {0, 1, 7, 100000}) {
    const Reading reading = ReadBytes(PipeBytes(records), chunk);
    EXPECT_EQ(reading.reader->container(), Container::kPipe);
    EXPECT_THAT(reading.sink.types(), ElementsAre(64, 3, 9));
    ASSERT_EQ(reading.reader->events().events().size(), 1u);
    EXPECT_THAT(reading.reader->events().events()[0].ids, ElementsAre(100));
    EXPECT_TRUE(reading.end.complete);
  }
}

TEST(ReaderTest, ReadsTheOtherByteOrder) {
  FileParts parts;
  parts.endian = Endian::kBig;
  parts.events = {{AttrBytes(0, synthetic::kSampleType, 112, Endian::kBig), {100}},
                  {AttrBytes(1, synthetic::kSampleType, 112, Endian::kBig), {101}}};
  parts.data =
      Join({CommBytes("prog", 101, 5, Endian::kBig), SampleBytes(100, 0x0102030405, Endian::kBig)});
  parts.features = {{kHostname, StringBytes("host", Endian::kBig)}};
  const Reading file = ReadBytes(FileBytes(parts));
  EXPECT_EQ(file.reader->endian(), Endian::kBig);
  EXPECT_EQ(file.sink.bytes(), parts.data);
  EXPECT_EQ(file.reader->features().hostname, "host");
  EXPECT_TRUE(file.reader->events().events()[0].attr.sample_id_all());
  EXPECT_EQ(file.reader->events().IndexOf(file.sink.records[0], Endian::kBig), 1u);
  EXPECT_EQ(file.reader->events().TimeOf(file.sink.records[1], Endian::kBig), 0x0102030405u);

  const Reading pipe = ReadBytes(PipeBytes(SampleBytes(100, 9, Endian::kBig), Endian::kBig), 3);
  EXPECT_THAT(pipe.sink.types(), ElementsAre(64, 9));
  EXPECT_EQ(pipe.reader->events().TimeOf(pipe.sink.records[1], Endian::kBig), 9u);
}

TEST(ReaderTest, ReadsAttrsOfEverySize) {
  for (const uint32_t size : {64, 72, 80, 96, 104, 112, 120, 128, 136, 144, 160, 256}) {
    FileParts parts;
    parts.attr_size = size;
    parts.events = {{AttrBytes(3, synthetic::kSampleType, size), {100}}};
    parts.data = SampleBytes(100, 7);
    const Reading reading = ReadBytes(FileBytes(parts));
    ASSERT_EQ(reading.reader->events().events().size(), 1u) << size;
    EXPECT_EQ(reading.reader->events().events()[0].attr.config, 3u);
    EXPECT_EQ(reading.end.records, 1u);
  }
}

TEST(ReaderTest, ReadsTheOldMagicInEitherOrder) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    FileParts parts;
    parts.endian = endian;
    parts.events = {{AttrBytes(0, synthetic::kSampleType, 64, endian), {100}}};
    parts.attr_size = 64;
    parts.data = SampleBytes(100, 7, endian);
    Bytes bytes = FileBytes(parts);
    std::ranges::copy(AsBytes("PERFFILE"), bytes.begin());
    const Reading reading = ReadBytes(bytes);
    EXPECT_EQ(reading.reader->endian(), endian);
    EXPECT_EQ(reading.end.records, 1u);
  }
}

TEST(ReaderTest, ReadsAttrsBehindTheDataOnlyWhereItCanSeek) {
  FileParts parts = TwoEvents();
  parts.features.clear();
  parts.attrs_behind_data = true;
  const Bytes bytes = FileBytes(parts);
  const Reading reading = ReadBytes(bytes);
  EXPECT_EQ(reading.reader->events().events().size(), 2u);
  EXPECT_EQ(reading.sink.bytes(), parts.data);
  const Error error = OpenError(bytes, false);
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("cannot be sought in"));
  EXPECT_THAT(error.cure, HasSubstr("by its name"));
}

TEST(ReaderTest, RefusesWhatIsNoRecording) {
  EXPECT_THAT(OpenError({}).message, HasSubstr("not a perf.data file"));
  EXPECT_THAT(OpenError(Bytes(200, 'x')).message, HasSubstr("PERFILE2"));
  Bytes cut = FileBytes(SampleBytes(100, 7));
  cut.resize(50);
  const Error error = OpenError(cut);
  EXPECT_EQ(error.kind, ErrorKind::kDamaged);
  EXPECT_EQ(error.file, "rec.data");
  EXPECT_EQ(error.offset, 50u);
}

TEST(ReaderTest, RefusesAFileWhoseEventsCannotBeRead) {
  Bytes bytes = FileBytes(SampleBytes(100, 7));
  StoreUnaligned<uint64_t>(bytes.data() + 16, 60, Endian::kLittle);  // attr_size
  EXPECT_EQ(OpenError(bytes).offset, 16u);
  bytes = FileBytes(SampleBytes(100, 7));
  StoreUnaligned<uint64_t>(bytes.data() + 24, uint64_t{1} << 40, Endian::kLittle);  // attrs.offset
  EXPECT_THAT(OpenError(bytes).message, HasSubstr("cut off"));
}

TEST(ReaderTest, ReadsAnUnfinishedFileToItsEnd) {
  FileParts parts = TwoEvents();
  parts.features.clear();
  parts.unfinished = true;
  Bytes bytes = FileBytes(parts);
  for (const size_t chunk : {0, 9}) {
    const Reading whole = ReadBytes(bytes, chunk);
    EXPECT_TRUE(whole.end.unfinished);
    EXPECT_TRUE(whole.end.complete);
    EXPECT_EQ(whole.end.records, 3u);
  }
  bytes.resize(bytes.size() - 3);
  const Reading cut = ReadBytes(bytes);
  EXPECT_TRUE(cut.end.unfinished);
  EXPECT_FALSE(cut.end.complete);
  EXPECT_EQ(cut.end.records, 2u);
  EXPECT_EQ(cut.end.damage->offset, bytes.size() + 3 - SampleBytes(0, 0).size());
}

TEST(ReaderTest, ReadsAFileCutAnywhere) {
  const Bytes bytes = FileBytes(TwoEvents());
  const size_t data_at = 104 + 3 * 8 + 2 * 128;
  const std::vector<size_t> record_ends = {data_at, data_at + 48, data_at + 80, data_at + 112};
  for (size_t size = data_at; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    for (const size_t chunk : {0, 11}) {
      const Reading reading = ReadBytes(cut, chunk);
      const auto whole = static_cast<uint64_t>(
          std::ranges::count_if(record_ends, [size](size_t end) { return end <= size; }) - 1);
      EXPECT_EQ(reading.end.records, whole) << size;
      // Behind the data only the features are lost.
      EXPECT_EQ(reading.end.complete, size >= record_ends.back()) << size;
      EXPECT_EQ(reading.end.damage.has_value(), size < record_ends.back()) << size;
      if (size >= record_ends.back()) {
        EXPECT_GT(reading.reader->counters().Get("perfdata.missing_feature"), 0u) << size;
      }
    }
  }
}

TEST(ReaderTest, SaysWhereTheFilesPartsAre) {
  const Bytes bytes = synthetic::FileBytes(SampleBytes(100, 7));
  MemorySource source(bytes);
  const auto reader = Reader::Open(source);
  ASSERT_TRUE(reader);
  const auto places = (*reader)->places();
  ASSERT_TRUE(places);
  EXPECT_EQ(places->attr_size, 128U);
  EXPECT_EQ(places->attr_count, 1U);
  EXPECT_EQ(places->attrs_offset, 112U);
  EXPECT_EQ(places->data_offset, 240U);
  EXPECT_EQ(places->data_size, 32U);
  EXPECT_EQ(places->features_offset, 272U);
  const Bytes piped = PipeBytes(SampleBytes(100, 7));
  MemorySource pipe(piped);
  EXPECT_FALSE((*Reader::Open(pipe))->places());
}

TEST(ReaderTest, StopsAtTextBehindAPipe) {
  Bytes bytes = PipeBytes(SampleBytes(100, 7));
  const size_t end = bytes.size();
  const std::string text = "[ perf record: Captured and wrote 0.001 MB - ]\n";
  bytes.insert(bytes.end(), text.begin(), text.end());
  const Reading reading = ReadBytes(bytes, 5);
  EXPECT_EQ(reading.end.records, 2u);
  EXPECT_FALSE(reading.end.complete);
  ASSERT_TRUE(reading.end.damage);
  EXPECT_EQ(reading.end.damage->offset, end);
  EXPECT_EQ(reading.end.damage->file, "rec.data");
  EXPECT_THAT(reading.end.damage->message, HasSubstr("no record"));
}

TEST(ReaderTest, StopsAtARecordOfSize0) {
  Bytes zero_size = RecordBytes(RecordType::kSample, {});
  zero_size[6] = 0;
  const Reading reading =
      ReadBytes(PipeBytes(Join({SampleBytes(100, 7), zero_size, SampleBytes(100, 8)})));
  EXPECT_EQ(reading.end.records, 2u);
  EXPECT_THAT(reading.end.damage->message, HasSubstr("gives its size as 0"));
}

TEST(ReaderTest, PassesUnknownRecordsOnAndCountsThem) {
  const Reading reading = ReadBytes(PipeBytes(
      Join({RecordBytes(50, Bytes(8)), RecordBytes(300, Bytes(16)), SampleBytes(100, 7)})));
  EXPECT_THAT(reading.sink.types(), ElementsAre(64, 50, 300, 9));
  EXPECT_EQ(reading.reader->counters().Get("perfdata.unknown_record"), 2u);
  EXPECT_TRUE(reading.end.complete);
}

TEST(ReaderTest, ReadsWhatFollowsRecordsOutsideTheirSize) {
  ByteWriter tracing;
  tracing.U32(13);
  const Bytes auxtrace = RecordBytes(RecordType::kAuxtrace, Numbers({300000, 0, 0, 0, 0}));
  const Bytes records = Join({RecordBytes(RecordType::kHeaderTracingData, tracing.Take()),
                              Bytes(16, 'T'), auxtrace, Bytes(300000, 'A'), SampleBytes(100, 7)});
  for (const size_t chunk : {0, 1000}) {
    const Reading reading = ReadBytes(PipeBytes(records), chunk);
    ASSERT_THAT(reading.sink.types(), ElementsAre(64, 66, 71, 9));
    EXPECT_EQ(AsText(reading.sink.records[1].extra), std::string(16, 'T'));
    EXPECT_EQ(reading.sink.records[2].extra_size, 300000u);
    EXPECT_TRUE(reading.end.complete);
    EXPECT_EQ(reading.end.bytes + 16, PipeBytes(records).size());
  }
  // A payload that is said to be larger than all there is.
  const Bytes huge = RecordBytes(RecordType::kAuxtrace, Numbers({uint64_t{1} << 60, 0, 0, 0, 0}));
  for (const size_t chunk : {0, 1000}) {
    const Reading reading = ReadBytes(PipeBytes(Join({huge, SampleBytes(100, 7)})), chunk);
    EXPECT_THAT(reading.sink.types(), ElementsAre(64, 71));
    EXPECT_FALSE(reading.end.complete);
  }
}

TEST(ReaderTest, TakesNamesFromWhereverTheyAre) {
  FileParts parts = TwoEvents();
  ByteWriter description;
  description.U32(2);
  description.U32(112);
  for (const uint64_t config : {0, 1}) {
    description.Bytes(AttrBytes(config));
    description.U32(1);
    description.Bytes(StringBytes(config == 0 ? "first" : "second"));
    description.U64(100 + config);
  }
  const Bytes event_desc = description.Take();
  parts.features[static_cast<uint32_t>(Feature::kEventDesc)] = event_desc;
  const Reading file = ReadBytes(FileBytes(parts));
  EXPECT_EQ(file.reader->events().events()[0].name, "first");
  EXPECT_EQ(file.reader->events().events()[1].name, "second");

  ByteWriter update;
  update.U64(2);
  update.U64(100);
  update.Text("updated");
  update.U8(0);
  const Reading pipe = ReadBytes(PipeBytes(RecordBytes(RecordType::kEventUpdate, update.Take())));
  EXPECT_EQ(pipe.reader->events().events()[0].name, "updated");

  ByteWriter old_name;
  old_name.U64(0);
  old_name.Text("old");
  old_name.Zeros(61);
  const Reading old =
      ReadBytes(PipeBytes(RecordBytes(RecordType::kHeaderEventType, old_name.Take())));
  EXPECT_EQ(old.reader->events().events()[0].name, "old");
}

TEST(ReaderTest, TakesFeaturesBeforeAttrsInAPipe) {
  const Bytes feature =
      RecordBytes(RecordType::kHeaderFeature, Join({Numbers({kHostname}), StringBytes("host")}));
  const Bytes branch_stack = RecordBytes(RecordType::kHeaderFeature, Numbers({15}));
  const Bytes last = RecordBytes(RecordType::kHeaderFeature, Numbers({32}));
  const Bytes attr =
      RecordBytes(RecordType::kHeaderAttr, Join({AttrBytes(5), Numbers({200, 201})}));
  Bytes bytes = PipeBytes({});
  bytes.resize(16);
  bytes = Join({bytes, feature, branch_stack, last, attr, SampleBytes(201, 7)});
  const Reading reading = ReadBytes(bytes, 10);
  EXPECT_EQ(reading.reader->features().hostname, "host");
  EXPECT_TRUE(reading.reader->features().raw.contains(15));
  EXPECT_FALSE(reading.reader->features().raw.contains(32));
  EXPECT_THAT(reading.reader->events().events()[0].ids, ElementsAre(200, 201));
  EXPECT_EQ(reading.reader->counters().Get("perfdata.unknown_feature"), 0u);
}

// Whoever reads from the start must not take a record for another event's than who knows all.
TEST(ReaderTest, TakesNoAttrsBehindRecordsOfEvents) {
  const Bytes attr = RecordBytes(RecordType::kHeaderAttr, Join({AttrBytes(5), Numbers({200})}));
  const Bytes late = RecordBytes(RecordType::kHeaderAttr, Join({AttrBytes(6), Numbers({201})}));
  Bytes header = PipeBytes({});
  header.resize(16);
  const Reading one = ReadBytes(Join({header, attr, SampleBytes(201, 7), late}), 10);
  ASSERT_EQ(one.reader->events().events().size(), 1u);
  EXPECT_EQ(one.reader->events().events()[0].attr.config, 5u);
  EXPECT_EQ(one.reader->counters().Get("perfdata.bad_attr"), 1u);
  const Reading none = ReadBytes(Join({header, SampleBytes(201, 7), late, attr}), 10);
  EXPECT_EQ(none.reader->events().events().size(), 0u);
  EXPECT_EQ(none.reader->counters().Get("perfdata.bad_attr"), 2u);
}

// What the reader tells, as it is whenever the sink is called.
class TellingSink : public RecordSink {
 public:
  explicit TellingSink(const Reader& reader) : reader_(reader) {}
  Status OnRecord(const RawRecord& raw) override {
    Note(std::to_string(raw.type));
    return {};
  }
  void BeforeTakeUp() override { Note("before"); }
  std::vector<std::string> told;

 private:
  void Note(const std::string& what) {
    told.push_back(what + ": " + std::to_string(reader_.events().events().size()) + " events, " +
                   reader_.features().hostname);
  }
  const Reader& reader_;
};

TEST(ReaderTest, TellsBeforeItTakesSomethingUp) {
  const Bytes feature =
      RecordBytes(RecordType::kHeaderFeature, Join({Numbers({kHostname}), StringBytes("host")}));
  const Bytes attr =
      RecordBytes(RecordType::kHeaderAttr, Join({AttrBytes(5), Numbers({200, 201})}));
  Bytes bytes = PipeBytes({});
  bytes.resize(16);
  bytes = Join({bytes, attr, SampleBytes(201, 7), feature, RoundBytes()});
  MemorySource source(bytes);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  ASSERT_TRUE(reader);
  TellingSink sink(**reader);
  ASSERT_TRUE((*reader)->ReadAll(sink));
  EXPECT_THAT(sink.told,
              ElementsAre("before: 0 events, ", "64: 1 events, ", "9: 1 events, ",
                          "before: 1 events, ", "80: 1 events, host", "68: 1 events, host"));
}

// HEADER_RESERVED is no feature: nobody can say what it holds.
TEST(ReaderTest, FeatureNumber0IsUnknown) {
  ByteWriter zero;
  zero.U64(0);
  zero.Text("whatever");
  const Reading pipe = ReadBytes(
      PipeBytes(Join({RecordBytes(RecordType::kHeaderFeature, zero.Take()), SampleBytes(100, 7)})));
  EXPECT_TRUE(pipe.reader->features().raw.empty());
  EXPECT_EQ(pipe.reader->counters().Get("perfdata.unknown_feature"), 1u);
  EXPECT_EQ(pipe.end.records, 3u);
  FileParts parts = TwoEvents();
  parts.features[0] = Bytes(8, 'x');
  const Reading file = ReadBytes(FileBytes(parts));
  EXPECT_FALSE(file.reader->features().raw.contains(0));
  EXPECT_EQ(file.reader->counters().Get("perfdata.unknown_feature"), 1u);
  EXPECT_EQ(file.reader->features().hostname, "host") << "those behind it are where they are";
}

TEST(ReaderTest, KeepsFeaturesWithinTheFile) {
  FileParts parts = TwoEvents();
  parts.features[200] = Bytes(1000, 'x');
  Bytes bytes = FileBytes(parts);
  const uint64_t table = 104 + 24 + 2 * 128 + parts.data.size();
  // HOSTNAME claims more than there is; 200 claims to lie outside.
  StoreUnaligned<uint64_t>(bytes.data() + table + 8, UINT64_MAX, Endian::kLittle);
  StoreUnaligned<uint64_t>(bytes.data() + table + 16, UINT64_MAX - 5, Endian::kLittle);
  const Reading reading = ReadBytes(bytes);
  EXPECT_EQ(reading.end.records, 3u);
  EXPECT_EQ(reading.reader->counters().Get("perfdata.missing_feature"), 2u);
  EXPECT_LT(reading.reader->features().raw.at(kHostname).size(), bytes.size());
}

TEST(ReaderTest, OverlappingFeaturesDoNotMultiplyTheFile) {
  FileParts parts = TwoEvents();
  for (uint32_t feature = 128; feature < 256; ++feature) parts.features[feature] = {};
  parts.features[255] = Bytes(100000, 'x');
  Bytes bytes = FileBytes(parts);
  const uint64_t table = 104 + 24 + 2 * 128 + parts.data.size();
  for (size_t i = 0; i < parts.features.size(); ++i) {
    StoreUnaligned<uint64_t>(bytes.data() + table + 16 * i, 0, Endian::kLittle);
    StoreUnaligned<uint64_t>(bytes.data() + table + 16 * i + 8, bytes.size(), Endian::kLittle);
  }
  const Reading reading = ReadBytes(bytes);
  size_t kept = 0;
  for (const auto& [feature, raw] : reading.reader->features().raw) kept += raw.size();
  EXPECT_LE(kept, bytes.size());
  EXPECT_GT(reading.reader->counters().Get("perfdata.missing_feature"), 100u);
}

TEST(ReaderTest, KeepsIdsWithinTheFile) {
  Bytes bytes = FileBytes(SampleBytes(100, 7));
  StoreUnaligned<uint64_t>(bytes.data() + 104 + 8 + 112 + 8, UINT64_MAX, Endian::kLittle);
  const Reading reading = ReadBytes(bytes);
  EXPECT_EQ(reading.reader->counters().Get("perfdata.bad_ids"), 1u);
  EXPECT_LE(reading.reader->events().events()[0].ids.size(), bytes.size() / 8);
}

class FailingSink : public RecordSink {
 public:
  Status OnRecord(const RawRecord&) override { return Fail(ErrorKind::kIo, "disk full"); }
};

TEST(ReaderTest, ReturnsTheSinksError) {
  const Bytes bytes = FileBytes(SampleBytes(100, 7));
  MemorySource source(bytes);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  ASSERT_TRUE(reader);
  FailingSink sink;
  const Result<ReadEnd> end = (*reader)->ReadAll(sink);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().message, "disk full");
  EXPECT_FALSE((*reader)->ReadAll(sink));  // reads once
}

TEST(ReaderTest, GivesTheSameRecordsOneByOne) {
  const Bytes records = Join({CommBytes("prog", 100, 5), SampleBytes(100, 7), RoundBytes()});
  for (const Bytes& bytes : {FileBytes(records), PipeBytes(records)}) {
    const Reading pushed = ReadBytes(bytes);
    MemorySource source(bytes);
    Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
    ASSERT_TRUE(reader);
    std::vector<uint32_t> types;
    RawRecord raw;
    while (true) {
      const Result<bool> more = (*reader)->Next(raw);
      ASSERT_TRUE(more);
      if (!*more) break;
      types.push_back(raw.type);
    }
    EXPECT_EQ(types, pushed.sink.types());
    EXPECT_EQ((*reader)->events().events().size(), 1u);  // a pipe's is taken up
    EXPECT_FALSE(*(*reader)->Next(raw));
  }
}

TEST(ReaderTest, RefusesAPartOfADirectory) {
  FileParts parts = TwoEvents();
  parts.features[static_cast<uint32_t>(Feature::kDirFormat)] = Numbers({1});
  const Error error = OpenError(FileBytes(parts));
  EXPECT_EQ(error.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(error.message, HasSubstr("directory"));
}

TEST(ReaderTest, MergesTheFilesOfADirectoryByTime) {
  FileParts parts = TwoEvents();
  parts.data = CommBytes("prog", 100, 0);
  parts.features[static_cast<uint32_t>(Feature::kDirFormat)] = Numbers({1});
  const Bytes data = FileBytes(parts);
  const Bytes no_time = RecordBytes(RecordType::kIdIndex, Numbers({0}));
  const Bytes first = Join({SampleBytes(100, 1), SampleBytes(100, 4), no_time});
  Bytes second = Join({SampleBytes(101, 2), SampleBytes(101, 3), SampleBytes(101, 9)});
  second.resize(second.size() - 4);  // cut off
  MemorySource data_source(data);
  MemorySource first_source(first, false, 3);
  MemorySource second_source(second, true, SIZE_MAX, "data.1");
  MemorySource empty_source({});
  Result<std::unique_ptr<Reader>> reader =
      Reader::OpenDirectory(data_source, {&first_source, &second_source, &empty_source});
  ASSERT_TRUE(reader);
  KeepingSink sink;
  const Result<ReadEnd> end = (*reader)->ReadAll(sink);
  ASSERT_TRUE(end);
  EXPECT_THAT(sink.types(), ElementsAre(3, 9, 9, 9, 9, 69));
  for (size_t i = 1; i <= 4; ++i) {
    EXPECT_EQ((*reader)->events().TimeOf(sink.records[i], Endian::kLittle), i);
  }
  EXPECT_EQ(end->records, 6u);
  EXPECT_FALSE(end->complete);
  EXPECT_EQ(end->damage->file, "data.1");
  EXPECT_EQ(end->damage->offset, 2 * SampleBytes(0, 0).size());
  EXPECT_EQ((*reader)->seekable_source(), nullptr);  // offsets are of several files
}

TEST(ReaderTest, TellsHowFarItIs) {
  const Bytes bytes = FileBytes(Join({SampleBytes(100, 7), SampleBytes(100, 8)}));
  MemorySource source(bytes);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  ASSERT_TRUE(reader);
  EXPECT_EQ((*reader)->total(), bytes.size());
  KeepingSink sink;
  ASSERT_TRUE((*reader)->ReadAll(sink));
  EXPECT_EQ((*reader)->position(), bytes.size());
}

}  // namespace
}  // namespace stackreel::perfdata
