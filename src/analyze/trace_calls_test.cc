#include "analyze/trace_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyze/trace_profile.h"
#include "analyze/trace_table.h"
#include "tracedata/fake_trace.h"

namespace stackreel::analyze {
namespace {

using tracedata::EventKind;

// Two threads: "a( b( c ) b ) d" and "c", one tick a nanosecond.
class TraceCallsTest : public testing::Test {
 protected:
  TraceCallsTest() {
    auto writer = tracedata::TraceWriter::Begin(trace_.calls, trace_.facts, 1);
    for (uint32_t id = 0; id < 4; ++id) {
      (void)writer->Add(
          tracedata::TraceFunction{.id = id, .name = std::string(1, static_cast<char>('a' + id))});
    }
    (void)writer->Add(tracedata::TraceThread{.index = 0, .pid = 1, .tid = 1, .comm = "one"});
    (void)writer->Add(tracedata::TraceThread{.index = 1, .pid = 1, .tid = 2, .comm = "two"});
    tracedata::ChunkBuilder first(*writer, 0, 64), second(*writer, 1, 64);
    (void)first.Enter(100, 0);
    (void)first.Enter(110, 1);
    (void)first.Enter(120, 2);
    (void)first.Exit(150, 2);
    (void)first.Exit(160, 1);
    (void)first.Enter(170, 1);
    (void)first.Exit(175, 1);
    (void)first.Exit(200, 0);
    (void)first.Enter(210, 3);
    (void)second.Enter(115, 2);
    (void)second.Exit(180, 2);
    (void)first.Flush();
    (void)second.Flush();
    (void)writer->Flush();
    source_ = *trace_.Open();
  }

  std::string Steps() {
    TraceCalls calls(*source_, selection_);
    MergedSteps steps(calls);
    std::string text;
    CallStep step;
    while (*steps.Next(step)) {
      text += step.kind == EventKind::kEntry ? "+" : step.unfinished ? "?" : "-";
      text += calls.names().NameOf(step.function) + std::to_string(step.depth);
      if (step.kind != EventKind::kEntry) {
        text += ":" + std::to_string(step.duration) + "/" + std::to_string(step.inner);
      }
      text += steps.thread_row() == 0 ? " " : "* ";
    }
    return text;
  }

  tracedata::FakeTrace trace_;
  std::unique_ptr<tracedata::TraceSource> source_;
  CallSelection selection_;
};

TEST_F(TraceCallsTest, ThreadsAreMergedInOrderOfTime) {
  EXPECT_EQ(Steps(),
            "+a0 +b1 +c0* +c2 -c2:30/0 -b1:50/30 +b1 -b1:5/0 -c0:65/0* -a0:100/55 +d0 ?d0:0/0 ");
}

TEST_F(TraceCallsTest, OnlyAFunctionAndWhatItCalls) {
  selection_.functions = {"b"};
  EXPECT_EQ(Steps(), "+b0 +c1 -c1:30/0 -b0:50/30 +b0 -b0:5/0 ");
}

TEST_F(TraceCallsTest, NotAFunctionNorWhatItCalls) {
  selection_.without = {"b"};
  EXPECT_EQ(Steps(), "+a0 +c0* -c0:65/0* -a0:100/0 +d0 ?d0:0/0 ");
}

TEST_F(TraceCallsTest, OnlySoManyLevels) {
  selection_.max_depth = 1;
  EXPECT_EQ(Steps(), "+a0 +c0* -c0:65/0* -a0:100/0 +d0 ?d0:0/0 ");
}

TEST_F(TraceCallsTest, OnlyWhatTookSoLong) {
  selection_.min_nanoseconds = 50;
  EXPECT_EQ(Steps(), "+a0 +b1 +c0* -b1:50/0 -c0:65/0* -a0:100/50 ");
}

TEST_F(TraceCallsTest, OnlyTheWaysToAFunction) {
  selection_.callers = {"c"};
  EXPECT_EQ(Steps(), "+a0 +b1 +c0* +c2 -c2:30/0 -b1:50/30 -c0:65/0* -a0:100/50 ");
}

TEST_F(TraceCallsTest, OnlyAThreadAndATime) {
  selection_.tids = {1};
  selection_.time_start = 70;
  EXPECT_EQ(Steps(), "+b0 -b0:5/0 +d0 ?d0:0/0 ");
  selection_.time_start = 0;
  selection_.time_end = 10;
  EXPECT_EQ(Steps(), "+a0 +b1 -b1:50/0 -a0:100/50 ");
}

TEST_F(TraceCallsTest, TheTableHasTimesOfEachFunction) {
  TraceCalls calls(*source_, selection_);
  const auto table = MakeTraceTable(calls);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->calls, 6u);
  EXPECT_EQ(table->threads, 2u);
  ASSERT_EQ(table->rows.size(), 4u);
  const FunctionTimes& b = table->rows[1];
  EXPECT_EQ(b.calls, 2u);
  EXPECT_EQ(b.total, 55u);
  EXPECT_EQ(b.self, 25u);
  EXPECT_EQ(b.min, 5u);
  EXPECT_EQ(b.max, 50u);
  EXPECT_EQ(table->rows[3].unfinished, 1u);
}

TEST_F(TraceCallsTest, TheProfileWeighsStacksByOwnTime) {
  TraceCalls calls(*source_, selection_);
  const auto profile = MakeTraceProfile(calls);
  ASSERT_TRUE(profile);
  uint64_t weight = 0, count = 0;
  for (const auto& sample : profile->samples()) {
    weight += sample.weight;
    count += sample.count;
  }
  EXPECT_EQ(weight, 100u + 65u);
  EXPECT_EQ(count, 6u);
  EXPECT_EQ(profile->facts.samples, 6u);
}

TEST(TraceTable, OfRecursiveCallsOnlyTheOutermostCountsInTotal) {
  tracedata::FakeTrace trace;
  auto writer = tracedata::TraceWriter::Begin(trace.calls, trace.facts, 1);
  (void)writer->Add(tracedata::TraceThread{.index = 0});
  tracedata::ChunkBuilder builder(*writer, 0);
  (void)builder.Enter(100, 5);
  (void)builder.Enter(110, 5);
  (void)builder.Exit(130, 5);
  (void)builder.Exit(140, 5);
  (void)builder.Flush();
  auto source = trace.Open();
  const CallSelection selection;
  TraceCalls calls(**source, selection);
  const auto table = MakeTraceTable(calls);
  ASSERT_EQ(table->rows.size(), 1u);
  EXPECT_EQ(table->rows[0].total, 40u);
  EXPECT_EQ(table->rows[0].self, 40u);
  EXPECT_EQ(table->rows[0].sum, 60u);
}

TEST(DurationCounts, QuantilesAreNearTheTruth) {
  DurationCounts counts;
  EXPECT_EQ(counts.Quantile(0.5), 0u);
  for (uint64_t i = 1; i <= 100'000; ++i) counts.Add(i);
  for (const double fraction : {0.01, 0.5, 0.9, 0.99, 1.0}) {
    EXPECT_NEAR(static_cast<double>(counts.Quantile(fraction)), fraction * 1e5,
                fraction * 1e5 / 31);
  }
  DurationCounts large;
  large.Add(UINT64_MAX);
  EXPECT_GT(large.Quantile(0.5), UINT64_MAX / 32 * 31);
}

TEST(TickScale, IsExactForNanosecondsAndNearForOtherClocks) {
  const TickScale same({.origin_ticks = 10, .origin_nanoseconds = 1000});
  EXPECT_EQ(same.Nanoseconds(123'456'789'012'345), 123'456'789'012'345u);
  EXPECT_EQ(same.Time(10), 1000u);
  EXPECT_EQ(same.Time(5), 995u);
  EXPECT_EQ(same.Ticks(77), 77u);
  const TickScale third({.ticks_per_second = 3'000'000'000});
  EXPECT_EQ(third.Nanoseconds(3'000'000'000'000'000), 1'000'000'000'000'000u);
  EXPECT_EQ(third.Ticks(1), 3u);
  const TickScale slow({.ticks_per_second = 1});
  EXPECT_EQ(slow.Nanoseconds(7), 7'000'000'000u);
}

}  // namespace
}  // namespace stackreel::analyze
