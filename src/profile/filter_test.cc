#include "profile/filter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/folded_profile.h"

namespace stackreel::profile {
namespace {

using ::testing::ElementsAre;

TEST(Pattern, StarStandsForAnyText) {
  EXPECT_TRUE(MatchesPattern("libc.so.6", "libc.so.6"));
  EXPECT_TRUE(MatchesPattern("libc.so.6", "lib*"));
  EXPECT_TRUE(MatchesPattern("libc.so.6", "*so*6"));
  EXPECT_TRUE(MatchesPattern("", "*"));
  EXPECT_TRUE(MatchesPattern("aab", "*ab"));
  EXPECT_FALSE(MatchesPattern("libc.so.6", "libc"));
  EXPECT_FALSE(MatchesPattern("libc.so.6", "*so"));
  EXPECT_FALSE(MatchesPattern("x", ""));
}

TEST(Pattern, ManyStarsAreNotSlow) {
  const std::string text(20'000, 'a');
  EXPECT_FALSE(MatchesPattern(text, "*a*a*a*a*a*a*a*a*b"));
}

class FilterTest : public ::testing::Test {
 protected:
  FilterTest() {
    AddFolded(profile_, "a;main;libc!read 1\nb;main;work 2\n");
    ProfileSample sample;
    sample.stack = profile_.samples()[1].stack;
    sample.pid = 5;
    sample.tid = 6;
    sample.cpu = 7;
    sample.time = 1000;
    sample.event = 1;
    profile_.AddSample(sample);
  }
  Profile profile_;
};

TEST_F(FilterTest, EmptyPassesAll) {
  EXPECT_THAT(SelectSamples(profile_, {}), ElementsAre(0, 1, 2));
}

TEST_F(FilterTest, EachFieldSelects) {
  Filter filter;
  filter.comms = {"a*"};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(0));
  filter = {};
  filter.pids = {5, 9};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(2));
  filter = {};
  filter.tids = {100};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(0, 1));
  filter = {};
  filter.cpus = {7};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(2));
  filter = {};
  filter.events = {0};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(0, 1));
  filter = {};
  filter.time_start = 1000;
  filter.time_end = 1000;
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(2));
}

TEST_F(FilterTest, FramesMatchAnywhereButDsoAndSymbolTogether) {
  Filter filter;
  filter.symbols = {"main"};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(0, 1, 2));
  filter.dsos = {"libc"};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre());
  filter.symbols = {};
  EXPECT_THAT(SelectSamples(profile_, filter), ElementsAre(0));
}

}  // namespace
}  // namespace stackreel::profile
