#include "perfdata/sorter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "perfdata/compressor.h"
#include "perfdata/rereader.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using synthetic::Bytes;
using synthetic::CommBytes;
using synthetic::FileBytes;
using synthetic::Join;
using synthetic::KeepingSink;
using synthetic::Numbers;
using synthetic::PipeBytes;
using synthetic::RecordBytes;
using synthetic::RoundBytes;
using synthetic::SampleBytes;
using testing::ElementsAre;

struct Sorted {
  std::vector<uint64_t> times;  // 0: passed at once
  std::vector<uint64_t> offsets;
  std::vector<uint32_t> events;
  Counters counters;
  uint64_t content_sum = 0;
};

// Keeps times and offsets only: records pin blocks.
class TimesSink : public TimedSink {
 public:
  explicit TimesSink(Sorted& sorted) : sorted_(sorted) {}
  Status OnTimedRecord(const TimedRecord& record) override {
    if (record.raw.type == static_cast<uint32_t>(RecordType::kHeaderAttr)) return {};
    sorted_.times.push_back(record.time);
    sorted_.offsets.push_back(record.raw.file_offset);
    sorted_.events.push_back(record.event.value_or(99));
    for (const uint8_t byte : record.raw.bytes) sorted_.content_sum += byte;
    return {};
  }

 private:
  Sorted& sorted_;
};

Sorted Sort(const Bytes& bytes, bool seekable = true, const RoundSorter::Limits& limits = {}) {
  Sorted sorted;
  MemorySource source(bytes, seekable);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  EXPECT_TRUE(reader);
  TimesSink sink(sorted);
  RoundSorter sorter(**reader, sink, sorted.counters, limits);
  EXPECT_TRUE((*reader)->ReadAll(sorter));
  EXPECT_TRUE(sorter.Finish());
  return sorted;
}

Bytes Samples(const std::vector<uint64_t>& times) {
  Bytes all;
  for (const uint64_t time : times) all = Join({all, SampleBytes(100, time)});
  return all;
}

TEST(RoundSorterTest, SortsByTimeAndKeepsTheOrderOfEqualTimes) {
  const Sorted sorted = Sort(FileBytes(Samples({5, 3, 4, 3, 5, 1})));
  EXPECT_THAT(sorted.times, ElementsAre(1, 3, 3, 4, 5, 5));
  EXPECT_LT(sorted.offsets[1], sorted.offsets[2]);
  EXPECT_LT(sorted.offsets[4], sorted.offsets[5]);
  EXPECT_THAT(sorted.events, testing::Each(0));
}

// Round 2 passes on what was seen before round 1, as far as it is not younger than all of that.
TEST(RoundSorterTest, FlushesByRounds) {
  const Sorted sorted =
      Sort(FileBytes(Join({Samples({10, 30, 20}), RoundBytes(), Samples({40, 25, 35}), RoundBytes(),
                           Samples({45, 38}), RoundBytes()})));
  // 0 stands for a round, which passes when it has flushed.
  EXPECT_THAT(sorted.times, ElementsAre(0, 10, 20, 25, 30, 0, 35, 38, 40, 0, 45));
  EXPECT_EQ(sorted.counters.Get("perfdata.out_of_order"), 0u);
}

TEST(RoundSorterTest, CountsWhatComesTooLate) {
  const Sorted sorted = Sort(FileBytes(Join({Samples({10, 30}), RoundBytes(), Samples({40}),
                                             RoundBytes(), Samples({15, 50}), RoundBytes()})));
  EXPECT_THAT(sorted.times, ElementsAre(0, 10, 30, 0, 15, 40, 0, 50));
  EXPECT_EQ(sorted.counters.Get("perfdata.out_of_order"), 1u);
}

TEST(RoundSorterTest, PassesRecordsWithoutTimeAtOnce) {
  const Bytes index = RecordBytes(RecordType::kIdIndex, Numbers({0}));
  const Sorted sorted = Sort(
      FileBytes(Join({Samples({10, 5}), index, CommBytes("x", 100, 0), Samples({UINT64_MAX})})));
  EXPECT_THAT(sorted.times, ElementsAre(0, 0, 0, 5, 10));
}

// The later sample's time decides what the round lets pass.
TEST(RoundSorterTest, OrdersOthersAsWithTheSamplesThatItLeavesOut) {
  const Bytes bytes =
      FileBytes(Join({CommBytes("b", 100, 30), Samples({40}), RoundBytes(), CommBytes("a", 100, 20),
                      Samples({50, 10}), RoundBytes(), CommBytes("c", 100, 35), Samples({5})}));
  MemorySource source(bytes);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  ASSERT_TRUE(reader);
  Sorted sorted;
  TimesSink sink(sorted);
  RoundSorter sorter(**reader, sink, sorted.counters);
  sorter.LeaveOutSamples();
  EXPECT_TRUE((*reader)->ReadAll(sorter));
  EXPECT_TRUE(sorter.Finish());
  EXPECT_THAT(sorted.times, ElementsAre(0, 20, 30, 0, 35));
  const Sorted all = Sort(bytes);
  EXPECT_THAT(all.times, ElementsAre(0, 10, 20, 30, 40, 0, 5, 35, 50));
}

// Where the older half is passed on early, others come too late for their place, and in the same
// order without the samples.
TEST(RoundSorterTest, OrdersOthersTheSameWhereNothingCanBeReadAgain) {
  Bytes data;
  for (const uint64_t ring : {1000, 0, 500}) {
    for (uint64_t i = 0; i < 20; ++i) {
      data = Join({data, Samples({ring + (7 * i)}), CommBytes("x", 100, ring + (7 * i) + 3)});
    }
  }
  const Bytes bytes = FileBytes(data);
  const auto times_of_others = [&](bool leaves_out, uint64_t limit) {
    MemorySource source(bytes, /*seekable=*/false);
    const std::unique_ptr<Reader> reader = *Reader::Open(source);
    KeepingSink sink;
    Counters counters;
    RoundSorter sorter(*reader, sink, counters, {limit, limit});
    if (leaves_out) sorter.LeaveOutSamples();
    EXPECT_TRUE(reader->ReadAll(sorter));
    EXPECT_TRUE(sorter.Finish());
    std::vector<uint64_t> times;
    for (size_t i = 0; i < sink.times.size(); ++i) {
      const bool is_sample = sink.records[i].record_type() == RecordType::kSample;
      EXPECT_FALSE(is_sample && leaves_out);
      if (!is_sample) times.push_back(sink.times[i]);
    }
    return times;
  };
  size_t unsorted = 0;
  for (uint64_t limit = 4096; limit < 32768; limit += 512) {
    const std::vector<uint64_t> with = times_of_others(false, limit);
    EXPECT_EQ(times_of_others(true, limit), with) << limit;
    EXPECT_EQ(with.size(), 60u);
    unsorted += std::ranges::is_sorted(with) ? 0 : 1;
  }
  EXPECT_GT(unsorted, 0u);
}

// Five rings that are drained in turn, without rounds. Records of 8 KB.
Bytes RingsWithoutRounds(uint32_t count) {
  const Bytes sample = SampleBytes(100, 0);
  std::mt19937 random(1);
  Bytes data;
  data.reserve(size_t{count} * 8192);
  std::vector<uint64_t> ring_times(5, 1000);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t ring = i / 100 % 5;
    ring_times[ring] += 1 + random() % 100;
    const size_t at = data.size();
    data.insert(data.end(), sample.begin(), sample.end());
    data.resize(at + 8192, static_cast<uint8_t>(i));
    StoreUnaligned<uint16_t>(data.data() + at + 6, 8192, Endian::kLittle);
    StoreUnaligned<uint64_t>(data.data() + at + 24, ring_times[ring], Endian::kLittle);
  }
  return data;
}

TEST(RoundSorterTest, SortsFilesWithoutRoundsByReadingAgain) {
  constexpr uint32_t kCount = 2000;  // 16 MB
  const Bytes data = RingsWithoutRounds(kCount);
  uint64_t content_sum = 0;
  for (const uint8_t byte : data) content_sum += byte;
  const Sorted sorted = Sort(FileBytes(data), true, {uint64_t{1} << 20, 0});
  ASSERT_EQ(sorted.times.size(), kCount);
  EXPECT_TRUE(std::ranges::is_sorted(sorted.times));
  EXPECT_EQ(sorted.content_sum, content_sum);
  EXPECT_EQ(sorted.counters.Get("perfdata.out_of_order"), 0u);
  EXPECT_EQ(sorted.counters.Get("perfdata.forced_flush"), 0u);
  std::vector<uint64_t> offsets = sorted.offsets;
  std::ranges::sort(offsets);
  EXPECT_EQ(std::ranges::adjacent_find(offsets), offsets.end());
}

TEST(RoundSorterTest, PassesTheOlderHalfOnWhereItCannotReadAgain) {
  const Bytes bytes = PipeBytes(RingsWithoutRounds(2000));
  const Sorted sorted = Sort(bytes, false, {0, uint64_t{10} << 20});
  EXPECT_EQ(sorted.times.size(), 2000u);
  EXPECT_GE(sorted.counters.Get("perfdata.forced_flush"), 1u);
  EXPECT_LE(sorted.counters.Get("perfdata.forced_flush"), 3u);
}

// Plain and compressed in turn, where the plain ones are let go and read again.
TEST(RoundSorterTest, MergesPlainAndDecompressedRecords) {
  Result<std::unique_ptr<Compressor>> compressor = Compressor::Create(1);
  ASSERT_TRUE(compressor);
  ByteWriter data(Endian::kLittle);
  for (uint64_t i = 0; i < 2000; i += 20) {
    std::vector<Bytes> samples;
    for (uint64_t j = i; j < i + 20; ++j) {
      samples.push_back(SampleBytes(100, 1 + j * 7919 % 2000 / 2));  // each time twice or so
    }
    if (i / 20 % 2 == 0) {
      data.Bytes(Join(samples));
    } else {
      ASSERT_TRUE((*compressor)->Compress(Join(samples), false, data));
    }
  }
  const Sorted sorted = Sort(FileBytes(data.Take()), true, {1, uint64_t{64} << 20});
  ASSERT_EQ(sorted.times.size(), 2000u);
  EXPECT_TRUE(std::ranges::is_sorted(sorted.times));
  for (size_t i = 1; i < sorted.times.size(); ++i) {
    if (sorted.times[i - 1] == sorted.times[i]) {
      EXPECT_LE(sorted.offsets[i - 1], sorted.offsets[i]);
    }
  }
}

class StoppingSink : public TimedSink {
 public:
  Status OnTimedRecord(const TimedRecord& record) override {
    return record.time == 0 ? Status() : Fail(ErrorKind::kInterrupted, "enough");
  }
};

TEST(RoundSorterTest, ReturnsTheSinksError) {
  const Bytes bytes = FileBytes(Samples({1, 2}));
  MemorySource source(bytes);
  Result<std::unique_ptr<Reader>> reader = Reader::Open(source);
  ASSERT_TRUE(reader);
  StoppingSink sink;
  Counters counters;
  RoundSorter sorter(**reader, sink, counters);
  ASSERT_TRUE((*reader)->ReadAll(sorter));
  const Status finished = sorter.Finish();
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().message, "enough");
}

TEST(RereaderTest, ReadsAcrossWindowsAndNoticesChanges) {
  const Bytes bytes = RingsWithoutRounds(100);
  MemorySource source(bytes);
  Rereader rereader(source, Endian::kLittle);
  RawRecord record;
  for (const uint64_t i : {99, 0, 7, 8, 15, 50, 0}) {
    ASSERT_TRUE(rereader.Read(i * 8192, 8192, record));
    EXPECT_EQ(record.record_type(), RecordType::kSample);
    EXPECT_EQ(record.misc, 2);
    EXPECT_EQ(record.bytes.back(), static_cast<uint8_t>(i));
  }
  EXPECT_FALSE(rereader.Read(0, 8184, record));              // another size
  EXPECT_FALSE(rereader.Read(99 * 8192 + 8, 8192, record));  // past the end
  EXPECT_FALSE(rereader.Read(uint64_t{1} << 40, 8192, record));
}

}  // namespace
}  // namespace stackreel::perfdata
