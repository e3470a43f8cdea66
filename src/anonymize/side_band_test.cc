// What is no sample, read once and told again.
#include "anonymize/side_band.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_recording.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using perfdata::RecordType;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr uint32_t kPid = 10;

// Each record by its type and the text or number that tells it from others.
class Told : public perfdata::TimedSink {
 public:
  explicit Told(const perfdata::Reader& reader) : reader_(reader) {}
  Status OnTimedRecord(const perfdata::TimedRecord& timed) override {
    const perfdata::Attr* attr =
        timed.event ? &reader_.events().events()[*timed.event].attr : nullptr;
    const auto record = perfdata::DecodeRecord(timed.raw, {reader_.endian(), attr});
    EXPECT_TRUE(record);
    std::string text;
    if (const auto* comm = std::get_if<perfdata::Comm>(&record->body)) {
      text = comm->comm.substr(0, 8);
    }
    records.emplace_back(timed.raw.record_type(), text);
    EXPECT_LE(last_time_, timed.time == 0 ? last_time_ : timed.time);
    last_time_ = std::max(last_time_, timed.time);
    return {};
  }
  std::vector<std::pair<RecordType, std::string>> records;

 private:
  const perfdata::Reader& reader_;
  uint64_t last_time_ = 0;
};

void AddComm(fake::Recording& in, const std::string& name) {
  in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, name});
}

// The same is told each time, whether it was kept or is read again.
void ExpectToldTwice(const RereadableRecording& recording, bool is_kept,
                     std::vector<std::pair<RecordType, std::string>>& records) {
  for (const bool again : {false, true}) {
    std::optional<Told> told;
    const auto read =
        recording.ReadSideBand([&](const perfdata::Reader& reader) -> perfdata::TimedSink& {
          return told.emplace(reader);
        });
    ASSERT_TRUE(read);
    EXPECT_EQ((*read)->side_band.is_kept(), is_kept);
    EXPECT_TRUE((*read)->side_band.read().complete);
    if (again) {
      EXPECT_EQ(told->records, records);
    } else {
      records = told->records;
    }
  }
}

TEST(SideBand, IsAllButSamples) {
  fake::Recording in({fake::SomeEvent(0)});
  AddComm(in, "first");
  in.SampleAt(kPid, 0x1000);
  AddComm(in, "second");
  in.SampleAt(kPid, 0x2000);
  in.Exec(kPid);
  const Bytes bytes = in.Finish();
  MemorySource source(bytes);
  const RereadableRecording recording(source);
  std::vector<std::pair<RecordType, std::string>> records;
  ExpectToldTwice(recording, /*is_kept=*/true, records);
  EXPECT_THAT(records,
              ElementsAre(Pair(RecordType::kComm, "first"), Pair(RecordType::kComm, "second"),
                          Pair(RecordType::kComm, "prog")));
  const auto read =
      recording.ReadSideBand([told = std::optional<Told>()](const perfdata::Reader& reader) mutable
                                 -> perfdata::TimedSink& { return told.emplace(reader); });
  EXPECT_THAT((*read)->side_band.counts(),
              ElementsAre(Pair(static_cast<uint32_t>(RecordType::kComm), 3),
                          Pair(static_cast<uint32_t>(RecordType::kSample), 2)));
}

// More than SideBand::kMostKept.
TEST(SideBand, IsReadAgainWhereItIsTooMuchToBeKept) {
  constexpr size_t kRecords = 300, kSize = 60'000;
  static_assert(kRecords * kSize > SideBand::kMostKept);
  fake::Recording in({fake::SomeEvent(0)});
  for (size_t i = 0; i < kRecords; ++i) {
    std::string name = "c" + std::to_string(i);
    name.resize(kSize, 'x');
    AddComm(in, name);
    in.SampleAt(kPid, 0x1000 + i);
  }
  const Bytes bytes = in.Finish();
  MemorySource source(bytes);
  std::vector<std::pair<RecordType, std::string>> records;
  ExpectToldTwice(RereadableRecording(source), /*is_kept=*/false, records);
  ASSERT_THAT(records, SizeIs(kRecords));
  EXPECT_EQ(records[255].second, "c255xxxx");
}

TEST(SideBand, OfARecordingOfSamplesIsNothing) {
  fake::Recording in({fake::SomeEvent(0)});
  in.SampleAt(kPid, 0x1000);
  const Bytes bytes = in.Finish();
  MemorySource source(bytes);
  std::vector<std::pair<RecordType, std::string>> records;
  ExpectToldTwice(RereadableRecording(source), /*is_kept=*/true, records);
  EXPECT_THAT(records, IsEmpty());
}

}  // namespace
}  // namespace stackreel::anonymize
