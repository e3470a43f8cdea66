#include "record/live_unwind.h"

#include <gtest/gtest.h>

namespace stackreel::record {
namespace {

TEST(DumpWatch, AFewCutStacksOfManyDoNotMatter) {
  DumpWatch watch;
  for (int i = 0; i < 3; ++i) watch.Add(16384);
  EXPECT_EQ(watch.TooSmall(), 0u);
  watch.Add(16384);
  EXPECT_EQ(watch.TooSmall(), 16384u);
  for (int i = 0; i < 2000; ++i) watch.Add(0);
  EXPECT_EQ(watch.TooSmall(), 0u);
}

TEST(DumpWatch, DepthThatComesLateIsSeen) {
  DumpWatch watch;
  for (int i = 0; i < 1'000'000; ++i) watch.Add(0);
  EXPECT_EQ(watch.TooSmall(), 0u);
  for (int i = 0; i < 20; ++i) watch.Add(16384);
  EXPECT_EQ(watch.TooSmall(), 16384u);
}

TEST(DumpWatch, DumpsOfAnEarlierSizeSayNothingOfTheNewOne) {
  DumpWatch watch;
  for (int i = 0; i < 20; ++i) watch.Add(16384);
  watch.Add(32768);
  EXPECT_EQ(watch.TooSmall(), 0u);
  for (int i = 0; i < 20; ++i) watch.Add(16384);
  EXPECT_EQ(watch.TooSmall(), 0u);
  for (int i = 0; i < 3; ++i) watch.Add(32768);
  EXPECT_EQ(watch.TooSmall(), 32768u);
}

}  // namespace
}  // namespace stackreel::record
