#include "anonymize/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stackreel::anonymize {
namespace {

using testing::ElementsAre;

KeyedHash SomeHash() { return Key::FromSecret(AsBytes("a secret of 20 bytes"))->For("places"); }

TEST(Coalesce, MakesOneOfThoseThatTouch) {
  std::vector<Span> spans = {{30, 40}, {10, 20}, {20, 25}, {12, 14}, {50, 60}};
  Coalesce(spans);
  EXPECT_THAT(spans, ElementsAre(Span{10, 25}, Span{30, 40}, Span{50, 60}));
  EXPECT_TRUE(Overlaps(spans, 24, 26));
  EXPECT_FALSE(Overlaps(spans, 25, 30));
  EXPECT_FALSE(Overlaps(spans, 60, 100));
}

// Rule: unrelated mappings never become adjacent; at least a page lies between.
TEST(PlaceAll, LeavesAPageBetweenAndKeepsTheAlignment) {
  std::vector<Movable> movables;
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t start = 0x7f0000000000 + i * 0x100000;
    movables.push_back({{start, start + 0x3000}, i % 2 == 0 ? uint64_t{4096} : uint64_t{0x200000}});
  }
  // Hardly more room than they need.
  const Arena arena = {{0x10000000, 0x20000000}, 4096, {}, {}};
  const auto deltas = PlaceAll(movables, arena, SomeHash(), 1);
  ASSERT_TRUE(deltas);
  std::vector<Span> placed;
  for (size_t i = 0; i < movables.size(); ++i) {
    const Span& old = movables[i].span;
    EXPECT_EQ((*deltas)[i] % movables[i].alignment, 0);
    placed.push_back({old.start + (*deltas)[i], old.end + (*deltas)[i]});
  }
  std::ranges::sort(placed);
  for (size_t i = 0; i < placed.size(); ++i) {
    EXPECT_GE(placed[i].start, arena.span.start);
    EXPECT_LE(placed[i].end, arena.span.end);
    if (i != 0) {
      EXPECT_GE(placed[i].start, placed[i - 1].end + 4096);
    }
  }
}

// Where most of the room is taken, too, where without the rule some would touch.
TEST(PlaceAll, LeavesAPageBetweenWhereThereIsLittleRoom) {
  std::vector<Movable> movables;
  for (uint64_t i = 0; i < 50; ++i) {
    const uint64_t start = 0x7f0000000000 + i * 0x100000;
    movables.push_back({{start, start + 0x3000}});
  }
  const Arena arena = {{0x10000000, 0x10200000}, 4096, {}, {}};
  for (uint64_t salt = 0; salt < 20; ++salt) {
    const auto deltas = PlaceAll(movables, arena, SomeHash(), salt);
    ASSERT_TRUE(deltas);
    std::vector<Span> placed;
    for (size_t i = 0; i < movables.size(); ++i) {
      const Span& old = movables[i].span;
      placed.push_back({old.start + (*deltas)[i], old.end + (*deltas)[i]});
    }
    std::ranges::sort(placed);
    for (size_t i = 1; i < placed.size(); ++i) {
      EXPECT_GE(placed[i].start, placed[i - 1].end + 4096);
    }
  }
}

TEST(PlaceAll, AvoidsWhatItIsTold) {
  const std::vector<Span> avoid = {{0x10000, 0x80000}};
  const Arena arena = {{0x10000, 0x100000}, 4096, avoid, {0xa0000, 0xb0000}};
  for (uint64_t salt = 0; salt < 50; ++salt) {
    const Movable movable = {{0x10000, 0x12000}};
    const auto deltas = PlaceAll({&movable, 1}, arena, SomeHash(), salt);
    ASSERT_TRUE(deltas);
    const uint64_t start = 0x10000 + deltas->front();
    EXPECT_GE(start, 0x80000);
    EXPECT_TRUE(start + 0x2000 <= 0xa0000 || start >= 0xb0000) << start;
  }
}

TEST(PlaceAll, FindsTheLastRoom) {
  const Movable big = {{0x100000, 0x1f0000}};
  const Arena arena = {{0x10000, 0x100000}, 4096, {}, {}};
  const auto deltas = PlaceAll({&big, 1}, arena, SomeHash(), 1);
  ASSERT_TRUE(deltas);
  EXPECT_EQ(0x100000 + deltas->front(), 0x10000);
  const std::vector<Movable> too_many = {big, {{0x300000, 0x301000}}};
  const auto none = PlaceAll(too_many, arena, SomeHash(), 1);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, ErrorKind::kDamaged);
}

}  // namespace
}  // namespace stackreel::anonymize
