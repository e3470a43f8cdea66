#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "os/perf_event.h"

namespace stackreel::os {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A ring of 2^n bytes, written as the kernel does.
class FakeRing {
 public:
  explicit FakeRing(size_t size) : data_(size, 0xee) {}
  // A record of `size` bytes whose payload is all `fill`.
  void Put(uint16_t size, uint8_t fill) {
    std::vector<uint8_t> record(size, fill);
    const uint32_t type = 9;
    std::memcpy(record.data(), &type, 4);
    std::memcpy(record.data() + 6, &size, 2);
    for (const uint8_t byte : record) data_[head++ & (data_.size() - 1)] = byte;
  }
  Result<size_t> Consume(const std::function<Status(ByteView)>& consume) {
    auto taken = ConsumeRing(data_, tail, head, joined_, consume);
    tail = head;
    return taken;
  }
  // The fill of each record, which must be the same in all of its payload.
  std::vector<int> Fills() {
    std::vector<int> fills;
    auto taken = Consume([&](ByteView record) -> Status {
      for (const uint8_t byte : record.subspan(8)) EXPECT_EQ(byte, record[8]);
      fills.push_back(record[8]);
      return {};
    });
    EXPECT_TRUE(taken.has_value()) << taken.error().message;
    return fills;
  }

  uint64_t head = 0, tail = 0;

 private:
  std::vector<uint8_t> data_;
  std::vector<uint8_t> joined_;
};

TEST(PerfRing, GivesRecordsInOrder) {
  FakeRing ring(256);
  ring.Put(16, 1);
  ring.Put(24, 2);
  EXPECT_THAT(ring.Fills(), ElementsAre(1, 2));
  EXPECT_THAT(ring.Fills(), ElementsAre());
}

TEST(PerfRing, JoinsRecordsThatWrapAtEveryPlace) {
  for (uint64_t start = 0; start < 128; start += 8) {
    FakeRing ring(128);
    ring.head = ring.tail = start + 128 * 1000;
    ring.Put(48, 1);
    ring.Put(80, 2);  // the ring is full now
    EXPECT_THAT(ring.Fills(), ElementsAre(1, 2)) << start;
  }
}

TEST(PerfRing, PositionsMayWrapSixtyFourBits) {
  FakeRing ring(128);
  ring.head = ring.tail = ~uint64_t{0} - 31;
  ring.Put(64, 5);
  EXPECT_THAT(ring.Fills(), ElementsAre(5));
}

TEST(PerfRing, NonsenseIsAnErrorAndNoLoop) {
  FakeRing ring(128);
  ring.Put(16, 1);
  ring.head += 8;  // a header of 0xee bytes follows: more than there is
  const auto taken = ring.Consume([](ByteView) { return Status(); });
  ASSERT_FALSE(taken.has_value());
  EXPECT_THAT(taken.error().message, HasSubstr("out of step"));
  ring.head = ring.tail + 4096;
  EXPECT_FALSE(ring.Consume([](ByteView) { return Status(); }).has_value());
}

TEST(PerfRing, StopsWhereTheConsumerFails) {
  FakeRing ring(128);
  ring.Put(16, 1);
  ring.Put(16, 2);
  int seen = 0;
  const auto taken = ring.Consume([&](ByteView) -> Status {
    ++seen;
    return Fail(ErrorKind::kIo, "disk full");
  });
  EXPECT_EQ(taken.error().message, "disk full");
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace stackreel::os
