#include <gtest/gtest.h>

#include "perfdata/reader.h"
#include "perfdata/synthetic_recording.h"

namespace stackreel::perfdata {
namespace {

using synthetic::Bytes;
using synthetic::Numbers;
using synthetic::RecordBytes;

Event MakeEvent(uint64_t sample_type, std::vector<uint64_t> ids,
                uint64_t flags = kAttrSampleIdAll) {
  Event event;
  event.attr.sample_type = sample_type;
  event.attr.flags = flags;
  event.ids = std::move(ids);
  return event;
}

RawRecord Raw(const Bytes& bytes) {
  RawRecord raw;
  raw.type = LoadUnaligned<uint32_t>(bytes.data(), Endian::kLittle);
  raw.bytes = bytes;
  return raw;
}

TEST(EventTableTest, FindsEventsById) {
  EventTable table;
  EXPECT_EQ(table.IndexOf(uint64_t{5}), std::nullopt);
  table.Add(MakeEvent(kSampleIdentifier, {5, 6}));
  table.Add(MakeEvent(kSampleIdentifier, {7}));
  table.AddIds(1, {8});
  EXPECT_EQ(table.IndexOf(uint64_t{6}), 0u);
  EXPECT_EQ(table.IndexOf(uint64_t{7}), 1u);
  EXPECT_EQ(table.IndexOf(uint64_t{8}), 1u);
  EXPECT_EQ(table.IndexOf(uint64_t{0}), 0u);   // the kernel's own records
  EXPECT_EQ(table.IndexOf(uint64_t{99}), 0u);  // unknown
  EXPECT_TRUE(table.HasId(8));
  EXPECT_FALSE(table.HasId(99));
}

// Each field before or behind the one that is looked for moves it.
TEST(EventTableTest, FindsIdAndTimeWithAndWithoutIdentifier) {
  constexpr uint64_t kType = kSampleIp | kSampleTid | kSampleTime | kSampleAddr | kSampleId |
                             kSampleStreamId | kSampleCpu | kSamplePeriod;
  EventTable table;
  table.Add(MakeEvent(kType, {100}));
  table.Add(MakeEvent(kType, {101}));
  // SAMPLE: ip, tid, time, addr, id, stream, cpu, period
  const Bytes sample = RecordBytes(RecordType::kSample, Numbers({1, 2, 33, 4, 101, 6, 7, 8}));
  EXPECT_EQ(table.IndexOf(Raw(sample), Endian::kLittle), 1u);
  EXPECT_EQ(table.TimeOf(Raw(sample), Endian::kLittle), 33u);
  // the trailer: tid, time, id, stream, cpu
  const Bytes lost = RecordBytes(RecordType::kLost, Numbers({1, 2, 3, 44, 101, 6, 7}));
  EXPECT_EQ(table.IndexOf(Raw(lost), Endian::kLittle), 1u);
  EXPECT_EQ(table.TimeOf(Raw(lost), Endian::kLittle), 44u);

  EventTable with_identifier;
  with_identifier.Add(MakeEvent(kType | kSampleIdentifier, {100}));
  with_identifier.Add(MakeEvent(kType | kSampleIdentifier, {101}));
  const Bytes sample2 = RecordBytes(RecordType::kSample, Numbers({101, 1, 2, 33, 4, 5, 6, 7, 8}));
  EXPECT_EQ(with_identifier.IndexOf(Raw(sample2), Endian::kLittle), 1u);
  EXPECT_EQ(with_identifier.TimeOf(Raw(sample2), Endian::kLittle), 33u);
  const Bytes lost2 = RecordBytes(RecordType::kLost, Numbers({1, 2, 3, 44, 5, 6, 7, 101}));
  EXPECT_EQ(with_identifier.IndexOf(Raw(lost2), Endian::kLittle), 1u);
  EXPECT_EQ(with_identifier.TimeOf(Raw(lost2), Endian::kLittle), 44u);
}

TEST(EventTableTest, BelievesAnIdWhereItsOwnEventHasIt) {
  EventTable table;
  table.Add(MakeEvent(kSampleIp | kSampleTime | kSampleId, {100}));  // id is the third word
  table.Add(MakeEvent(kSampleIp | kSampleId, {101}));                // id is the second
  const Bytes first = RecordBytes(RecordType::kSample, Numbers({1, 2, 100}));
  const Bytes second = RecordBytes(RecordType::kSample, Numbers({1, 101, 9}));
  EXPECT_EQ(table.IndexOf(Raw(first), Endian::kLittle), 0u);
  EXPECT_EQ(table.TimeOf(Raw(first), Endian::kLittle), 2u);
  EXPECT_EQ(table.IndexOf(Raw(second), Endian::kLittle), 1u);
  EXPECT_EQ(table.TimeOf(Raw(second), Endian::kLittle), std::nullopt);
  // 101 stands where event 0 has its id: that is not event 1.
  const Bytes neither = RecordBytes(RecordType::kSample, Numbers({1, 2, 101}));
  EXPECT_EQ(table.IndexOf(Raw(neither), Endian::kLittle), 0u);
}

// A record without a trailer may end with zeros.
TEST(EventTableTest, TakesNoZerosForAnId) {
  EventTable table;
  table.Add(MakeEvent(kSampleIdentifier, {100}, 0));  // without sample_id_all
  table.Add(MakeEvent(kSampleIdentifier, {0}));
  const Bytes comm = RecordBytes(RecordType::kComm, Numbers({1, 2, 0}));
  EXPECT_EQ(table.IndexOf(Raw(comm), Endian::kLittle), 0u);
}

TEST(EventTableTest, FindsNothingInWhatIsTooShortOrHasNoTrailer) {
  EventTable table;
  table.Add(MakeEvent(kSampleIdentifier | kSampleTime, {100}, 0));  // without sample_id_all
  const Bytes comm = RecordBytes(RecordType::kComm, Numbers({1, 2, 3}));
  EXPECT_EQ(table.IndexOf(Raw(comm), Endian::kLittle), 0u);
  EXPECT_EQ(table.TimeOf(Raw(comm), Endian::kLittle), std::nullopt);
  const Bytes shorter = RecordBytes(RecordType::kSample, Numbers({1}));
  EXPECT_EQ(table.TimeOf(Raw(shorter), Endian::kLittle), std::nullopt);
  // Records of perf itself are no event's.
  const Bytes round = RecordBytes(RecordType::kFinishedRound, {});
  EXPECT_EQ(table.IndexOf(Raw(round), Endian::kLittle), std::nullopt);
}

TEST(EventTableTest, NamesEvents) {
  EventTable table;
  Event named = MakeEvent(kSampleIdentifier, {1});
  named.name = "mine";
  table.Add(named);
  table.Add(MakeEvent(kSampleIdentifier, {2}));
  EXPECT_EQ(table.events()[0].name, "mine");
  EXPECT_EQ(table.events()[1].name, AttrName(table.events()[1].attr));
  table.SetName(2, "second");
  table.SetName(77, "nobody's");
  EXPECT_EQ(table.events()[0].name, "mine");
  EXPECT_EQ(table.events()[1].name, "second");
  table.SetName(0, "first");  // a pipe without ids
  EXPECT_EQ(table.events()[0].name, "first");
}

}  // namespace
}  // namespace stackreel::perfdata
