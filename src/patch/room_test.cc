#include "patch/room.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

namespace stackreel::patch {
namespace {

constexpr uint64_t kGap = 1 << 20;
constexpr AddressRange Range(uint64_t start, uint64_t end) { return {Avma(start), Avma(end)}; }

TEST(FindRoomTest, BelowTheModuleAndAwayFromIt) {
  const AddressRange module = Range(0x5555'5555'4000, 0x5555'5556'0000);
  const AddressRange mapped[] = {module, Range(0x5555'5557'0000, 0x5555'5559'0000)};
  const auto room = FindRoom(mapped, module, 0x10000);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->end, module.start - kGap);
  EXPECT_EQ(room->size(), 0x10000U);
  EXPECT_TRUE(Reaches(*room, module));
}

// A program that is not position-independent lies too low for room below.
TEST(FindRoomTest, AboveWhereThereIsNoneBelow) {
  const AddressRange module = Range(0x400000, 0x500000);
  const AddressRange mapped[] = {Range(0x10000, 0x400000), module, Range(0x600000, 0x700000)};
  const auto room = FindRoom(mapped, module, 0x10000);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->start, Avma(0x700000 + kGap)) << "not in the hole that is smaller than two gaps";
  EXPECT_EQ(FindRoom(mapped, module, 0x10000, 0)->start, Avma(0x500000));
}

TEST(FindRoomTest, NothingWhereAllWithinReachIsTaken) {
  const AddressRange module = Range(0x7f00'0000'0000, 0x7f00'0010'0000);
  const AddressRange mapped[] = {Range(0x7eff'0000'0000, 0x7f01'0000'0000)};
  EXPECT_FALSE(FindRoom(mapped, module, 0x1000));
}

TEST(FindRoomTest, NonsenseIsNoRoom) {
  EXPECT_FALSE(FindRoom({}, Range(0x400000, 0x400000), 0x1000));
  EXPECT_FALSE(FindRoom({}, Range(0x400000, 0x300000), 0x1000));
  EXPECT_FALSE(FindRoom({}, Range(0x400000, 0x500000), 0));
  EXPECT_FALSE(FindRoom({}, Range(0x400000, 0x500000), kReach + 4096));
  EXPECT_FALSE(FindRoom({}, Range(0x400000, 0x400000 + kReach + 1), 0x1000));
  EXPECT_FALSE(FindRoom({}, Range(0xffff'ffff'ff60'0000, 0xffff'ffff'ff60'1000), 0x1000));
}

TEST(FindRoomTest, WhatIsFoundIsFreeAndInReach) {
  std::mt19937_64 random(1);
  int found = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<AddressRange> mapped;
    uint64_t at = 0x10000 + random() % 0x10'0000'0000;
    for (int i = 0; i < 20; ++i) {
      at += (random() % 4 == 0 ? random() % 0x8000'0000 : random() % 0x200'0000) / 4096 * 4096;
      const uint64_t end = at + (1 + random() % 0x8000) * 4096;
      mapped.push_back(Range(at / 4096 * 4096, end / 4096 * 4096));
      at = end;
    }
    const AddressRange module = mapped[random() % mapped.size()];
    const uint64_t size = (1 + random() % 64) * 4096;
    const auto room = FindRoom(mapped, module, size);
    if (!room) continue;
    ++found;
    EXPECT_EQ(room->size(), size);
    EXPECT_EQ(room->start.value % 4096, 0U);
    EXPECT_TRUE(Reaches(*room, module));
    for (const AddressRange& mapping : mapped) {
      EXPECT_TRUE(room->end + kGap <= mapping.start || mapping.end + kGap <= room->start);
    }
  }
  EXPECT_GT(found, 1000);
}

class SlotRoomsTest : public testing::Test {
 protected:
  static constexpr AddressRange kRoom = Range(0x10000, 0x11000);
  static constexpr AddressRange kModule = Range(0x400000, 0x500000);
  SlotRoomsTest() { rooms_.AddRoom(kRoom); }
  size_t Reclaim(std::vector<Avma> met, bool complete = true) {
    return rooms_.Reclaim({std::move(met), complete});
  }
  SlotRooms rooms_;
};

TEST_F(SlotRoomsTest, SlotsDoNotOverlap) {
  const auto a = rooms_.Take(20, kModule);
  const auto b = rooms_.Take(1, kModule);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->size(), 32U);
  EXPECT_EQ(b->start, a->end);
  EXPECT_EQ(rooms_.free_bytes(), kRoom.size() - 48);
  EXPECT_FALSE(rooms_.Take(0x1000, kModule));
}

TEST_F(SlotRoomsTest, OnlyRoomsWithinReach) {
  EXPECT_FALSE(rooms_.Take(16, Range(0x7f00'0000'0000, 0x7f00'0000'1000)));
  rooms_.AddRoom(Range(0x7eff'ffff'0000, 0x7eff'ffff'1000));
  EXPECT_TRUE(rooms_.Take(16, Range(0x7f00'0000'0000, 0x7f00'0000'1000)));
}

TEST_F(SlotRoomsTest, ARetiredSlotIsKeptUntilNobodyCanMeetIt) {
  const AddressRange slot = *rooms_.Take(0x1000, kModule);
  rooms_.Retire(slot);
  EXPECT_FALSE(rooms_.Take(16, kModule));
  EXPECT_EQ(Reclaim({}), 0U) << "no census has begun";
  rooms_.BeginCensus();
  EXPECT_EQ(Reclaim({}, false), 0U) << "not all threads were looked at";
  for (const uint64_t at : {slot.start.value, slot.start.value + 77, slot.end.value}) {
    EXPECT_EQ(Reclaim({Avma(1), Avma(at)}), 0U);
  }
  EXPECT_EQ(rooms_.retired(), 1U);
  EXPECT_EQ(Reclaim({slot.start - 1, slot.end + 1}), 1U);
  EXPECT_TRUE(rooms_.Take(0x1000, kModule));
}

TEST_F(SlotRoomsTest, WhatIsRetiredDuringACensusWaitsForTheNext) {
  const AddressRange early = *rooms_.Take(16, kModule);
  const AddressRange late = *rooms_.Take(16, kModule);
  rooms_.Retire(early);
  rooms_.BeginCensus();
  rooms_.Retire(late);
  EXPECT_EQ(Reclaim({}), 1U);
  EXPECT_EQ(rooms_.retired(), 1U);
  rooms_.BeginCensus();
  EXPECT_EQ(Reclaim({}), 1U);
  EXPECT_EQ(rooms_.free_bytes(), kRoom.size());
}

TEST_F(SlotRoomsTest, FreeRangesGrowTogether) {
  std::vector<AddressRange> slots;
  while (const auto slot = rooms_.Take(256, kModule)) slots.push_back(*slot);
  EXPECT_EQ(slots.size(), 16U);
  for (const size_t i : {3, 5, 4, 15, 0, 1, 2, 14, 6, 13, 7, 12, 8, 11, 9, 10}) {
    rooms_.Retire(slots[i]);
  }
  rooms_.BeginCensus();
  EXPECT_EQ(Reclaim({}), 16U);
  EXPECT_TRUE(rooms_.Take(0x1000, kModule));
}

}  // namespace
}  // namespace stackreel::patch
