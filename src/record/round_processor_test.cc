#include "record/round_processor.h"

#include <gtest/gtest.h>

namespace stackreel::record {
namespace {

TEST(ParseSwitchOutput, SignalsSizesAndTimes) {
  EXPECT_FALSE(ParseSwitchOutput("")->enabled());
  EXPECT_TRUE(ParseSwitchOutput("signal")->on_signal);
  EXPECT_EQ(ParseSwitchOutput("512K")->bytes, 512u << 10);
  EXPECT_EQ(ParseSwitchOutput("2G")->bytes, uint64_t{2} << 30);
  EXPECT_EQ(ParseSwitchOutput("30s")->time.count(), 30'000);
  EXPECT_EQ(ParseSwitchOutput("2h")->time.count(), 7'200'000);
}

TEST(ParseSwitchOutput, RefusesWhatIsNone) {
  for (const char* text : {"x", "10", "0M", "10Mx", "M", "-5s", "99999999999G", "1.5M"}) {
    const auto result = ParseSwitchOutput(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace stackreel::record
