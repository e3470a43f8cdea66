#include "base/duration.h"

#include <gtest/gtest.h>

#include <utility>

namespace stackreel {
namespace {

TEST(ParseDurationTest, EveryUnit) {
  for (const auto& [text, nanoseconds] :
       std::initializer_list<std::pair<const char*, uint64_t>>{{"0", 0},
                                                               {"500", 500},
                                                               {"5ns", 5},
                                                               {"5nsec", 5},
                                                               {"12us", 12'000},
                                                               {"12usec", 12'000},
                                                               {"1.5ms", 1'500'000},
                                                               {"1.5msec", 1'500'000},
                                                               {"2s", 2'000'000'000},
                                                               {"2sec", 2'000'000'000},
                                                               {"3m", 180'000'000'000},
                                                               {"3min", 180'000'000'000}}) {
    const auto time = ParseDuration("-t", text);
    ASSERT_TRUE(time.has_value()) << text;
    EXPECT_EQ(*time, nanoseconds) << text;
  }
}

TEST(ParseDurationTest, RoundsToTheNearest) {
  EXPECT_EQ(*ParseDuration("-t", "0.6"), 1U);
  EXPECT_EQ(*ParseDuration("-t", "0.0014us"), 1U);
}

TEST(ParseDurationTest, RefusesWhatIsNone) {
  for (const char* const text : {"", "us", "soon", "-5us", "5 us", "5h", "5us ", "nan", "inf",
                                 "infs", "1e400", "9e18", "150000000m"}) {
    const auto time = ParseDuration("--time-filter", text);
    ASSERT_FALSE(time.has_value()) << text << " is " << *time;
    EXPECT_EQ(time.error().kind, ErrorKind::kUsage);
    EXPECT_TRUE(time.error().message.starts_with("--time-filter: '")) << time.error().message;
  }
}

}  // namespace
}  // namespace stackreel
