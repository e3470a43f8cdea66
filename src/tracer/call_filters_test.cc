#include "tracer/call_filters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stackreel::tracer {
namespace {

using tracedata::FilterOption;
using Kind = FilterOption::Kind;

Result<CallFilters> Parse(std::vector<FilterOption> options) { return CallFilters::Parse(options); }
std::string ErrorOf(Kind kind, const char* text) {
  const auto filters = Parse({{kind, text}});
  return filters ? "" : filters.error().message + "; " + filters.error().cure;
}

TEST(CallFiltersTest, WhatFunctionsDo) {
  const auto filters = Parse({{Kind::kBegin, "parse*@libfoo"},
                              {Kind::kEnd, "log"},
                              {Kind::kCaller, "malloc"},
                              {Kind::kTrigger, "f@libfoo@depth=3,time=1.5ms,traceoff"}});
  ASSERT_TRUE(filters) << filters.error().ToString();
  ASSERT_EQ(filters->functions.size(), 4u);
  EXPECT_EQ(filters->functions[0].actions.flags, tracedata::kBegins);
  EXPECT_EQ(filters->functions[0].pattern.text(), "parse*@libfoo");
  EXPECT_EQ(filters->functions[1].actions.flags, tracedata::kEnds);
  EXPECT_EQ(filters->functions[2].actions.flags, tracedata::kLeadsHere);
  const FunctionFilter& trigger = filters->functions[3];
  EXPECT_EQ(trigger.pattern.text(), "f@libfoo");
  EXPECT_EQ(trigger.actions.flags,
            tracedata::kSetsLevels | tracedata::kSetsDuration | tracedata::kTraceOff);
  EXPECT_EQ(trigger.actions.levels, 3);
  EXPECT_EQ(trigger.least_nanoseconds, 1'500'000u);
  EXPECT_EQ(filters->RootState(), tracedata::kOutside | tracedata::kHolding);
  EXPECT_TRUE(filters->SwitchTracing());
}

TEST(CallFiltersTest, WhatHoldsForAll) {
  const auto filters = Parse(
      {{Kind::kDepth, "5"}, {Kind::kDepth, "3"}, {Kind::kTime, "10us"}, {Kind::kTracing, "off"}});
  ASSERT_TRUE(filters) << filters.error().ToString();
  EXPECT_EQ(filters->RootState(), tracedata::kLevels - 3);
  EXPECT_EQ(filters->least_nanoseconds, 10'000u);
  EXPECT_EQ(filters->tracing, false);
  EXPECT_FALSE(filters->SwitchTracing());
  EXPECT_EQ(Parse({})->RootState(), 0u);
  EXPECT_EQ(Parse({{Kind::kDepth, "99999999999999999999999"}})->RootState(), 0u);
}

TEST(CallFiltersTest, Refusals) {
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "main@explode"),
              testing::AllOf(testing::HasSubstr("there is no trigger 'explode'"),
                             testing::HasSubstr("depth=N, filter, notrace, time=TIME")));
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "main@depth"), testing::HasSubstr("no trigger 'depth'"));
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "main@filter,"), testing::HasSubstr("no trigger ''"));
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "main"), testing::HasSubstr("names no trigger"));
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "@filter"), testing::HasSubstr("names no function"));
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "main@depth=-1"), testing::HasSubstr("'-1' is not a number"));
  EXPECT_THAT(ErrorOf(Kind::kTrigger, "main@time=fast"),
              testing::HasSubstr("'fast' is not a time"));
  EXPECT_THAT(ErrorOf(Kind::kDepth, "0"), testing::HasSubstr("not a number of levels, 1 or more"));
  EXPECT_THAT(ErrorOf(Kind::kTime, "3 weeks"), testing::HasSubstr("-t: '3 weeks' is not a time"));
  EXPECT_THAT(ErrorOf(Kind::kTracing, "maybe"), testing::HasSubstr("neither on nor off"));
  EXPECT_NE(ErrorOf(Kind::kBegin, "^("), "");
  EXPECT_EQ(ErrorOf(Kind::kBegin, "ok"), "");
}

}  // namespace
}  // namespace stackreel::tracer
