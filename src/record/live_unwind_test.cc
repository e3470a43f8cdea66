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

TEST(MasksIn, AreTheLastWordsOfTheSample) {
  perfdata::Attr attr;
  attr.sample_type = perfdata::kSampleIp | perfdata::kSampleRegsUser | perfdata::kSampleStackUser |
                     perfdata::kSampleArch1;
  attr.sample_regs_user = 1;
  const std::vector<uint8_t> words(16, 0x11);
  perfdata::Sample sample;
  sample.present = attr.sample_type;
  sample.regs_user.abi = 2;
  sample.regs_user.mask = 1;
  sample.regs_user.values = perfdata::U64Array(ByteView(words).first(8), kNativeEndian);
  sample.stack_user = words;
  sample.arch_enabled_keys = 0x1d;
  sample.arch_insn_mask = 0x007f000000000000;
  sample.arch_data_mask = 0x0070000000000000;
  const auto record = *perfdata::EncodeSample(sample, 2, attr, kNativeEndian);
  const auto masks = MasksIn(record, attr);
  ASSERT_TRUE(masks);
  EXPECT_EQ(masks->present, perfdata::kSampleArch1);
  EXPECT_EQ(masks->arch_enabled_keys, sample.arch_enabled_keys);
  EXPECT_EQ(masks->arch_insn_mask, sample.arch_insn_mask);
  EXPECT_EQ(masks->arch_data_mask, sample.arch_data_mask);
  EXPECT_FALSE(MasksIn(ByteView(record).first(24), attr)) << "too short to have any";
  attr.sample_type &= ~uint64_t{perfdata::kSampleArch1};
  EXPECT_FALSE(MasksIn(record, attr));
}

}  // namespace
}  // namespace stackreel::record
