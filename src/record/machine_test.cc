#include "record/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

namespace stackreel::record {
namespace {

TEST(MachineFeatures, DecodeAsWhatThisMachineIs) {
  perfdata::Features features;
  Counters counters;
  for (const auto& [feature, bytes] : MachineFeatures()) {
    perfdata::DecodeFeature(feature, bytes, kNativeEndian, features, counters);
  }
  EXPECT_TRUE(counters.values().empty());
  EXPECT_FALSE(features.hostname.empty());
  EXPECT_THAT(features.version, ::testing::StartsWith("stackreel "));
  EXPECT_FALSE(features.arch.empty());
  ASSERT_TRUE(features.nr_cpus.has_value());
  EXPECT_GE(features.nr_cpus->second, features.nr_cpus->first);
  EXPECT_GT(features.total_mem_kb.value_or(0), 1000u);
  EXPECT_EQ(features.pmu_names[1], "software");
}

TEST(MachineFeatures, AMachineWithoutFilesGivesWhatIsLeft) {
  const FeatureBytes features = MachineFeatures({.proc = "/nowhere", .sys = "/nowhere"});
  EXPECT_EQ(features.count(static_cast<uint32_t>(perfdata::Feature::kOsRelease)), 1u);
  EXPECT_EQ(features.count(static_cast<uint32_t>(perfdata::Feature::kCpuTopology)), 0u);
  EXPECT_EQ(features.count(static_cast<uint32_t>(perfdata::Feature::kCache)), 0u);
}

TEST(ClockFeatures, OfAClockThatIsAndOneThatIsNot) {
  const FeatureBytes features = ClockFeatures(CLOCK_MONOTONIC);
  ASSERT_EQ(features.size(), 2u);
  const auto& data = features.at(static_cast<uint32_t>(perfdata::Feature::kClockData));
  ASSERT_EQ(data.size(), 24u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(data.data(), kNativeEndian), 1u);
  EXPECT_EQ(LoadUnaligned<uint32_t>(data.data() + 4, kNativeEndian),
            static_cast<uint32_t>(CLOCK_MONOTONIC));
  EXPECT_TRUE(ClockFeatures(9999).empty());
}

}  // namespace
}  // namespace stackreel::record
