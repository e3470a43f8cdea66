#include "tracedata/trace_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/memory_io.h"
#include "tracedata/block.h"
#include "tracedata/call_event.h"
#include "tracedata/fact_wire.h"
#include "tracedata/one_of_each.h"

namespace stackreel::tracedata {
namespace {

std::vector<TraceFact> FactsIn(ByteView file) {
  Counters counters;
  std::vector<TraceFact> facts;
  BlockDecoder decoder;
  size_t at = CheckFileHead(file, TraceFileKind::kFacts)->size;
  while (const auto head = DecodeBlockHead(file.subspan(at))) {
    const auto bytes = decoder.Decode(*head, file.subspan(at + kBlockHeadSize, head->stored));
    if (!bytes) break;
    for (TraceFact& fact : DecodeFacts(*bytes, counters)) facts.push_back(std::move(fact));
    at += kBlockHeadSize + head->stored;
  }
  EXPECT_EQ(at, file.size());
  EXPECT_TRUE(counters.values().empty());
  return facts;
}

class WriterTest : public testing::TestWithParam<int> {
 protected:
  MemorySink calls_, facts_;
};

TEST_P(WriterTest, FactsComeBack) {
  auto writer = TraceWriter::Begin(calls_, facts_, GetParam());
  ASSERT_TRUE(writer);
  for (const TraceFact& fact : OneOfEachFact()) ASSERT_TRUE(writer->Add(fact));
  ASSERT_TRUE(writer->Flush());
  EXPECT_EQ(FactsIn(facts_.bytes()), OneOfEachFact());
}

TEST_P(WriterTest, FactsStandInTheFileBeforeTheChunkThatSpeaksOfThem) {
  auto writer = TraceWriter::Begin(calls_, facts_, GetParam());
  ASSERT_TRUE(writer->Add(TraceThread{.index = 4, .pid = 1, .tid = 1, .comm = "a"}));
  const std::vector<uint8_t> words(4096, 7);
  ASSERT_TRUE(writer->Add(TraceChunk{.thread = 4, .sequence = 9, .base = 77, .words = words}));
  // Not flushed: as if the writer had been killed here.
  EXPECT_EQ(FactsIn(facts_.bytes()).size(), 1u);
  const ByteView file = calls_.bytes();
  const auto head = DecodeBlockHead(file.subspan(kFileHeadSize));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->thread, 4u);
  EXPECT_EQ(head->sequence, 9u);
  EXPECT_EQ(head->base, 77u);
  EXPECT_EQ(head->codec, GetParam() == 0 ? BlockCodec::kPlain : BlockCodec::kColumns);
  BlockDecoder decoder;
  const auto bytes =
      decoder.Decode(*head, file.subspan(kFileHeadSize + kBlockHeadSize, head->stored));
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(std::ranges::equal(*bytes, words));
}

// Compressed as they stand, they take three bytes a call.
TEST(TraceWriterTest, PlainCallsTakeLessThanTwoBytes) {
  constexpr size_t kCalls = 5000;
  std::mt19937 random(1);
  ByteWriter words(Endian::kLittle);
  uint32_t start = 0;
  for (size_t i = 0; i < kCalls; ++i) {
    words.U32(EventHead(EventKind::kCall, 1));
    words.U32(start += 80 + random() % 8);
    words.U32(30 + random() % 8);
  }
  MemorySink calls, facts;
  auto writer = TraceWriter::Begin(calls, facts, 1);
  ASSERT_TRUE(writer->Add(TraceChunk{.thread = 0, .words = words.view()}));
  EXPECT_LT(calls.bytes().size(), 2 * kCalls);
}

// Refuses what is written while it is full.
class FullSink : public MemorySink {
 public:
  Status Write(ByteView bytes) override {
    return full ? Fail(ErrorKind::kIo, "full") : MemorySink::Write(bytes);
  }
  bool full = false;
};

TEST(TraceWriterTest, FactsThatCannotBeWrittenAreWrittenLater) {
  MemorySink calls;
  FullSink facts;
  auto writer = TraceWriter::Begin(calls, facts, 0);
  facts.full = true;
  const std::vector<uint8_t> words(8, 1);
  ASSERT_TRUE(writer->Add(TraceFact(ProcessFork{.ticks = 1, .pid = 2, .parent_pid = 3})));
  EXPECT_FALSE(writer->Add(TraceChunk{.words = words}));
  ASSERT_TRUE(writer->Add(TraceFact(ProcessFork{.ticks = 2, .pid = 4, .parent_pid = 3})));
  EXPECT_FALSE(writer->Add(TraceChunk{.words = words}));
  EXPECT_FALSE(writer->Flush());
  facts.full = false;
  EXPECT_TRUE(writer->Flush());
  std::vector<uint32_t> pids;
  for (const TraceFact& fact : FactsIn(facts.bytes())) {
    pids.push_back(std::get<ProcessFork>(fact).pid);
  }
  EXPECT_EQ(pids, (std::vector<uint32_t>{2, 4}));
}

INSTANTIATE_TEST_SUITE_P(Levels, WriterTest, testing::Values(0, 1, 3));

TEST(BlockTest, EveryChangedByteOfABlockIsFound) {
  MemorySink sink;
  auto writer = BlockWriter::Begin(sink, TraceFileKind::kCalls, 1);
  const std::vector<uint8_t> bytes(200, 3);
  ASSERT_TRUE(writer->Write({.thread = 1}, bytes));
  for (size_t at = 0; at < sink.bytes().size(); ++at) {
    std::vector<uint8_t> file = sink.bytes();
    file[at] ^= 0x40;
    const auto file_head = CheckFileHead(file, TraceFileKind::kCalls);
    if (at < kFileHeadSize) {
      EXPECT_FALSE(file_head) << at;
      continue;
    }
    const auto head = DecodeBlockHead(ByteView(file).subspan(file_head->size));
    if (at < kFileHeadSize + kBlockHeadSize) {
      EXPECT_FALSE(head) << at;
      continue;
    }
    ASSERT_TRUE(head);
    BlockDecoder decoder;
    EXPECT_FALSE(decoder.Decode(*head, ByteView(file).subspan(file_head->size + kBlockHeadSize)))
        << at;
  }
}

// Version 2 had no columns, and chunks of calls that are compressed as facts are.
TEST(BlockTest, CallsThatAreCompressedAsTheyAreStayReadable) {
  MemorySink sink;
  auto writer = BlockWriter::Begin(sink, TraceFileKind::kFacts, 1);
  const std::vector<uint8_t> bytes(200, 3);
  ASSERT_TRUE(writer->Write({.thread = 1}, bytes));
  const ByteView block = ByteView(sink.bytes()).subspan(kFileHeadSize);
  const auto head = DecodeBlockHead(block);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->codec, BlockCodec::kZstd);
  BlockDecoder decoder;
  const auto decoded = decoder.Decode(*head, block.subspan(kBlockHeadSize));
  ASSERT_TRUE(decoded);
  EXPECT_TRUE(std::ranges::equal(*decoded, bytes));
}

TEST(BlockTest, ALaterVersionIsRefusedAsSuch) {
  MemorySink sink;
  ASSERT_TRUE(BlockWriter::Begin(sink, TraceFileKind::kCalls, 1));
  std::vector<uint8_t> file = sink.bytes();
  file[8] = kTraceVersion + 1;
  const auto start = CheckFileHead(file, TraceFileKind::kCalls);
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().kind, ErrorKind::kUnsupported);
}

TEST(BlockTest, WhatIsTooLargeIsRefused) {
  MemorySink sink;
  auto writer = BlockWriter::Begin(sink, TraceFileKind::kCalls, 0);
  const std::vector<uint8_t> bytes(kMaxBlockBytes + 1);
  EXPECT_FALSE(writer->Write({}, bytes));
}

TEST(FactWireTest, UnknownAndDamagedFactsArePassedOverAndCounted) {
  ByteWriter out(Endian::kLittle);
  out.U32(3);
  out.U16(999);
  out.U16(0);
  out.Text("new");
  out.U32(2);  // a thread of two bytes
  out.U16(6);
  out.U16(0);
  out.Text("xx");
  EncodeFact(ProcessFork{.ticks = 1, .pid = 2, .parent_pid = 3}, out);
  out.U32(1000);  // longer than what is there
  out.U32(5);
  Counters counters;
  const std::vector<TraceFact> facts = DecodeFacts(out.view(), counters);
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(std::get<ProcessFork>(facts[0]).parent_pid, 3u);
  EXPECT_EQ(counters.Get("tracedata.unknown_fact"), 1u);
  EXPECT_EQ(counters.Get("tracedata.bad_fact"), 2u);
}

}  // namespace
}  // namespace stackreel::tracedata
