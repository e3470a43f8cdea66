#include "tracedata/trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tracedata/event_order.h"
#include "tracedata/fake_trace.h"
#include "tracedata/one_of_each.h"

namespace stackreel::tracedata {
namespace {

using testing::HasSubstr;

std::string TextOf(const std::vector<FakeEvent>& events) {
  std::string text;
  for (const FakeEvent& event : events) {
    text += event.kind == EventKind::kEntry  ? "+"
            : event.kind == EventKind::kExit ? "-"
            : event.kind == EventKind::kLeft ? "~"
                                             : "!";
    text += std::to_string(event.function) + "@" + std::to_string(event.ticks) + " ";
  }
  return text;
}

class RandomTrace : public testing::TestWithParam<size_t> {};

TEST_P(RandomTrace, IsReadAsItWasMade) {
  const size_t limit = GetParam();
  for (uint32_t seed = 0; seed < 40; ++seed) {
    FakeTrace trace;
    auto writer = TraceWriter::Begin(trace.calls, trace.facts, 1);
    for (uint32_t id = 0; id < 10; ++id) (void)writer->Add(TraceFunction{.id = id, .name = "f"});
    std::vector<std::vector<FakeEvent>> runs;
    std::vector<ChunkBuilder> builders;
    for (uint32_t thread = 0; thread < 3; ++thread) {
      (void)writer->Add(TraceThread{.index = thread, .pid = 1, .tid = thread});
      runs.push_back(RandomRun(seed * 3 + thread, 3000));
      builders.emplace_back(*writer, thread, limit);
    }
    for (uint32_t thread = 0; thread < 3; ++thread) WriteRun(runs[thread], builders[thread]);
    for (ChunkBuilder& builder : builders) ASSERT_TRUE(builder.Flush());
    ASSERT_TRUE(writer->Flush());
    auto source = trace.Open();
    ASSERT_TRUE(source);
    for (uint32_t thread = 0; thread < 3; ++thread) {
      const std::vector<FakeEvent> found = ReadRun(**source, thread);
      ASSERT_EQ(TextOf(found), TextOf(runs[thread])) << seed << " " << limit;
      ASSERT_EQ(found, runs[thread]);
    }
    EXPECT_TRUE((*source)->counters().values().empty());
    EXPECT_EQ((*source)->damage(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(ChunkSizes, RandomTrace, testing::Values(64, 500, 4096, 65536));

TEST(TraceReaderTest, TracesOfVersion2AreReadAndSaySo) {
  // As its writer began the two files.
  const std::array<uint8_t, 16> begin = {'S', 'R', 't', 'r', 'a', 'c', 'e', '\n', 2, 0, 0, 0, 1};
  const std::array<uint8_t, 8> hash_of_calls = {0x86, 0xf9, 0xc1, 0xaf, 0xb6, 0xe4, 0xfe, 0xf0};
  const std::array<uint8_t, 8> hash_of_facts = {0xcf, 0x85, 0x18, 0xcf, 0x69, 0x5d, 0x86, 0xd2};
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  (void)writer->Add(TraceFunction{.id = 0, .name = "f"});
  (void)writer->Add(TraceThread{.index = 0, .pid = 1, .tid = 1});
  ChunkBuilder builder(*writer, 0);
  const std::vector<FakeEvent> run = RandomRun(1, 100);
  WriteRun(run, builder);
  ASSERT_TRUE(builder.Flush());
  ASSERT_TRUE(writer->Flush());
  std::vector<uint8_t> calls = trace.calls.bytes(), facts = trace.facts.bytes();
  std::ranges::copy(begin, calls.begin());
  std::ranges::copy(hash_of_calls, calls.begin() + 24);
  std::ranges::copy(begin, facts.begin());
  facts[12] = 2;
  std::ranges::copy(hash_of_facts, facts.begin() + 24);
  const auto source = OpenTrace(std::make_unique<MemorySource>(calls, true, SIZE_MAX, "calls"),
                                std::make_unique<MemorySource>(facts, true, SIZE_MAX, "facts"));
  ASSERT_TRUE(source) << source.error().ToString();
  EXPECT_THAT((*source)->FormatName(), HasSubstr("version 2"));
  EXPECT_EQ(ReadRun(**source, 0), run);
}

TEST(EventOrder, EntriesOfOpenCallsMayStandAtTheChunksEnd) {
  // As an agent writes it: g and h returned inside f, which is still open.
  ByteWriter words(Endian::kLittle);
  const auto put = [&](EventKind kind, uint32_t function, uint32_t a, uint32_t b = 0) {
    words.U32(EventHead(kind, function));
    words.U32(a);
    if (EventWords(kind) == 3) words.U32(b);
  };
  put(EventKind::kCall, 2, 20, 5);
  put(EventKind::kEntry, 4, 32);  // it has arguments, were they kept
  put(EventKind::kCall, 5, 33, 1);
  put(EventKind::kExit, 4, 36);
  put(EventKind::kCall, 3, 30, 10);
  put(EventKind::kEntry, 9, 5);
  put(EventKind::kEntry, 1, 10);
  Counters counters;
  std::vector<OrderedEvent> out;
  EventOrder().Append(words.view(), 1000, out, counters);
  std::vector<FakeEvent> events;
  for (const OrderedEvent& event : out) {
    events.push_back({.kind = event.kind(), .ticks = event.ticks, .function = event.function()});
  }
  EXPECT_EQ(TextOf(events),
            "+9@1005 +1@1010 +2@1020 -2@1025 +3@1030 +4@1032 +5@1033 -5@1034 -4@1036 -3@1040 ");
  EXPECT_TRUE(counters.values().empty());
}

TEST(EventOrder, OverlappingCallsAreCountedAndMovedIntoEachOther) {
  ByteWriter words(Endian::kLittle);
  for (const uint32_t word : {EventHead(EventKind::kCall, 1), 10u, 10u,
                              EventHead(EventKind::kCall, 2), 5u, 20u,   // 5 … 25
                              EventHead(EventKind::kCall, 3), 22u, 8u})  // 22 … 30
    words.U32(word);
  Counters counters;
  std::vector<OrderedEvent> out;
  EventOrder().Append(words.view(), 0, out, counters);
  EXPECT_EQ(out.size(), 6u);
  EXPECT_EQ(counters.Get("tracedata.bad_nesting"), 1u);
}

// A call with a return value is one event; arguments are told at once, where calls around it are
// not yet.
TEST(EventOrder, ValuesStayWithTheirCalls) {
  ByteWriter words(Endian::kLittle);
  for (const uint32_t word : {EventHead(EventKind::kCall, 4, true),  2u,  1u, 4u, 44u,    // 2 … 3
                              EventHead(EventKind::kEntry, 2, true), 12u, 8u, 7u, 8u,     // 12 …
                              EventHead(EventKind::kCall, 3, true),  14u, 1u, 1u, 0x99u,  // 14 … 15
                              EventHead(EventKind::kExit, 2, true),  16u, 4u, 5u,         // … 16
                              EventHead(EventKind::kCall, 1),        10u, 10u})           // 10 … 20
    words.U32(word);
  Counters counters;
  std::vector<OrderedEvent> out;
  EventOrder().Append(words.view(), 0, out, counters);
  const EventBatch batch{out, words.view()};
  std::string text;
  for (const OrderedEvent& event : out) {
    text += std::string(event.kind() == EventKind::kEntry ? " +" : " -") +
            std::to_string(event.function());
    for (const uint8_t byte : batch.ValuesOf(event)) {
      if (byte != 0) text += ":" + std::to_string(byte);
    }
  }
  EXPECT_EQ(text, " +4 -4:44 +1 +2:7:8 +3 -3:153 -2:5 -1");
  EXPECT_TRUE(counters.values().empty());
}

TEST(EventOrder, AnEventThatMakesNoSenseEndsTheChunk) {
  for (const std::vector<uint32_t>& bad :
       {std::vector<uint32_t>{7u << kKindShift, 1, 1},                         // no such kind
        std::vector<uint32_t>{EventHead(EventKind::kCall, 1), 1},              // cut
        std::vector<uint32_t>{EventHead(EventKind::kLeft, 1, true), 1, 0, 0},  // no values there
        std::vector<uint32_t>{EventHead(EventKind::kEntry, 1, true), 1, 400, 1},
        std::vector<uint32_t>{EventHead(EventKind::kEntry, 1, true), 1, 0xffffffff},
        std::vector<uint32_t>{EventHead(EventKind::kLost, 99), 1, 1}}) {
    ByteWriter words(Endian::kLittle);
    for (const uint32_t word : {EventHead(EventKind::kCall, 1), 10u, 10u}) words.U32(word);
    for (const uint32_t word : bad) words.U32(word);
    Counters counters;
    std::vector<OrderedEvent> out;
    EventOrder().Append(words.view(), 0, out, counters);
    EXPECT_EQ(out.size(), 2u);
    EXPECT_EQ(counters.Get("tracedata.bad_event"), 1u);
  }
}

FakeTrace SmallTrace() {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  for (const TraceFact& fact : OneOfEachFact()) (void)writer->Add(fact);
  ChunkBuilder builder(*writer, 0, 256);
  for (uint32_t i = 0; i < 100; ++i) {
    (void)builder.Enter(1000 + 10 * i, 3);
    (void)builder.Exit(1004 + 10 * i, 3);
  }
  (void)builder.Flush();
  (void)writer->Flush();
  return trace;
}

TEST(TraceReader, EveryCutIsReadUpToThere) {
  const FakeTrace whole = SmallTrace();
  size_t last = 0;
  for (size_t size = 0; size <= whole.calls.bytes().size(); ++size) {
    FakeTrace cut;
    (void)cut.calls.Write(ByteView(whole.calls.bytes()).first(size));
    (void)cut.facts.Write(whole.facts.bytes());
    auto source = cut.Open();
    EXPECT_EQ(source.has_value(), size >= 32) << size;
    if (!source) continue;
    const size_t events = ReadRun(**source, 0).size();
    EXPECT_GE(events, last);
    last = events;
    const uint64_t lost = (*source)->counters().Get("tracedata.damaged_bytes");
    EXPECT_EQ(lost != 0, !(*source)->damage().empty());
    if (size == whole.calls.bytes().size()) {
      EXPECT_EQ(lost, 0u);
    }
  }
  EXPECT_EQ(last, 200u);
}

TEST(TraceReader, WhatLiesBehindDamageIsRead) {
  const FakeTrace whole = SmallTrace();
  for (size_t at = 32; at < whole.calls.bytes().size(); ++at) {
    std::vector<uint8_t> bytes = whole.calls.bytes();
    bytes[at] ^= 0x11;
    FakeTrace damaged;
    (void)damaged.calls.Write(bytes);
    (void)damaged.facts.Write(whole.facts.bytes());
    auto source = damaged.Open();
    ASSERT_TRUE(source);
    const std::vector<FakeEvent> events = ReadRun(**source, 0);
    // One chunk of 20 calls is gone, and where it is not the last, that is told.
    EXPECT_GE(events.size(), 150u) << at;
    EXPECT_LT(events.size(), 200u) << at;
    EXPECT_NE((*source)->damage(), "") << at;
    EXPECT_NE((*source)->counters().Get("tracedata.damaged_bytes"), 0u);
  }
}

TEST(TraceReader, FactsBehindDamageAreRead) {
  FakeTrace trace = SmallTrace();
  std::vector<uint8_t> facts = trace.facts.bytes();
  facts[32 + 60] ^= 1;
  FakeTrace damaged;
  (void)damaged.calls.Write(trace.calls.bytes());
  (void)damaged.facts.Write(facts);
  auto source = damaged.Open();
  ASSERT_TRUE(source);
  EXPECT_EQ(ReadRun(**source, 0).size(), 200u);
  EXPECT_THAT((*source)->damage(), HasSubstr("facts"));
  EXPECT_EQ((*source)->tables().functions.at(0).name, "[function 3]");
  EXPECT_EQ((*source)->counters().Get("tracedata.unknown_function"), 1u);
  EXPECT_EQ((*source)->counters().Get("tracedata.unknown_thread"), 1u);
}

TEST(TraceReader, AMissingChunkIsALoss) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  (void)writer->Add(TraceThread{.index = 0});
  ByteWriter words(Endian::kLittle);
  for (const uint32_t word : {EventHead(EventKind::kCall, 1), 10u, 10u}) words.U32(word);
  (void)writer->Add(TraceChunk{.thread = 0, .sequence = 3, .base = 500, .words = words.view()});
  (void)writer->Add(TraceChunk{.thread = 0, .sequence = 0, .base = 100, .words = words.view()});
  auto source = trace.Open();
  EXPECT_EQ(TextOf(ReadRun(**source, 0)), "+1@110 -1@120 !3@500 +1@510 -1@520 ");
  EXPECT_EQ((*source)->counters().Get("tracedata.dropped_chunks"), 2u);
}

// A trace of one thread that has calls of 1, 2 and 3 open, from 110, 120 and 130 on, and then a gap
// before a chunk of these words, whose times count from 110.
std::string TextBehindGap(const std::vector<uint32_t>& behind) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  (void)writer->Add(TraceThread{.index = 0});
  const auto add = [&](uint32_t sequence, uint64_t base, const std::vector<uint32_t>& all) {
    ByteWriter words(Endian::kLittle);
    for (const uint32_t word : all) words.U32(word);
    (void)writer->Add(TraceChunk{.sequence = sequence, .base = base, .words = words.view()});
  };
  constexpr EventKind kEntry = EventKind::kEntry;
  add(0, 100,
      {EventHead(kEntry, 1), 10, EventHead(kEntry, 2), 20, EventHead(kEntry, 3, true), 30, 4, 99});
  add(2, 110, behind);
  auto source = trace.Open();
  return TextOf(ReadRun(**source, 0));
}
constexpr uint32_t kDropped =
    EventHead(EventKind::kLost, static_cast<uint32_t>(LossReason::kNoSpace));

TEST(TraceReader, CallsThatAreOpenAcrossAGapOfTheAgentAreNoFurtherOnes) {
  // 5 began in the gap, 3 ended there.
  EXPECT_EQ(TextBehindGap({kDropped, 90, 7, EventHead(EventKind::kCall, 4), 95, 3,
                           EventHead(EventKind::kEntry, 1), 0, EventHead(EventKind::kEntry, 2), 10,
                           EventHead(EventKind::kEntry, 5), 60}),
            "+1@110 +2@120 +3@130 !3@130 ~3@130 +5@170 !3@200 +4@205 -4@208 ");
  // 2 and 3 return in the chunk.
  EXPECT_EQ(
      TextBehindGap({kDropped, 90, 7, EventHead(EventKind::kCall, 3), 20, 75,
                     EventHead(EventKind::kCall, 2), 10, 90, EventHead(EventKind::kEntry, 1), 0}),
      "+1@110 +2@120 +3@130 !3@130 !3@200 -3@205 -2@210 ");
  // All have ended; the same function was called at another time.
  EXPECT_EQ(TextBehindGap({kDropped, 90, 7, EventHead(EventKind::kEntry, 1), 1}),
            "+1@110 +2@120 +3@130 !3@130 ~3@130 ~2@130 ~1@130 +1@130 !3@200 ");
}

TEST(TraceReader, CallsStayOpenAcrossAChunkThatWasLost) {
  EXPECT_EQ(TextBehindGap({EventHead(EventKind::kExit, 3), 90, EventHead(EventKind::kExit, 2), 91}),
            "+1@110 +2@120 +3@130 !3@130 -3@200 -2@201 ");
}

TEST(TraceReader, TimesNeverGoBack) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  ByteWriter words(Endian::kLittle);
  for (const uint32_t word : {EventHead(EventKind::kCall, 1), 10u, 10u}) words.U32(word);
  (void)writer->Add(TraceChunk{.thread = 0, .sequence = 0, .base = 500, .words = words.view()});
  (void)writer->Add(TraceChunk{.thread = 0, .sequence = 1, .base = 100, .words = words.view()});
  auto source = trace.Open();
  EXPECT_EQ(TextOf(ReadRun(**source, 0)), "+1@510 -1@520 +1@520 -1@520 ");
  EXPECT_EQ((*source)->counters().Get("tracedata.out_of_order"), 2u);
}

TEST(TraceReader, TimesDoNotGoBackBehindALoss) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  ByteWriter words(Endian::kLittle);
  for (const uint32_t word :
       {EventHead(EventKind::kBase, 0), 100u, 0u, EventHead(EventKind::kCall, 1), 10u, 10u}) {
    words.U32(word);
  }
  (void)writer->Add(TraceChunk{.thread = 0, .sequence = 2, .base = 500, .words = words.view()});
  auto source = trace.Open();
  EXPECT_EQ(TextOf(ReadRun(**source, 0)), "!3@500 +1@500 -1@500 ");
  EXPECT_EQ((*source)->counters().Get("tracedata.out_of_order"), 2u);
}

TEST(TraceReader, AThreadToldAgainHasItsLastName) {
  FakeTrace trace;
  auto writer = TraceWriter::Begin(trace.calls, trace.facts, 0);
  (void)writer->Add(TraceThread{.index = 7, .comm = "old"});
  (void)writer->Add(TraceThread{.index = 7, .comm = "new"});
  (void)writer->Flush();
  auto source = trace.Open();
  ASSERT_EQ((*source)->tables().threads.size(), 1u);
  EXPECT_EQ((*source)->tables().threads[0].comm, "new");
}

}  // namespace
}  // namespace stackreel::tracedata
