#include "session/jit_dump.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "session/fake_jit_dump.h"

namespace stackreel::session {
namespace {

std::string NameAt(const JitDump& dump, uint64_t avma, uint64_t time) {
  const JitCode* code = dump.Find(Avma(avma), time);
  return code == nullptr ? "" : std::string(code->name);
}

class JitDumpTest : public testing::TestWithParam<Endian> {};
INSTANTIATE_TEST_SUITE_P(BothOrders, JitDumpTest, testing::Values(Endian::kLittle, Endian::kBig));

TEST_P(JitDumpTest, TheLastCodeAtAnAddressIsThere) {
  FakeJitDump fake(GetParam());
  fake.Load(10, 0x1000, 0x40, "first", 0);
  fake.Load(20, 0x1020, 0x40, "second", 1);
  fake.Load(30, 0x1000, 0x20, "third", 2);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->machine(), 62);
  EXPECT_EQ(NameAt(*dump, 0x1000, 9), "");
  EXPECT_EQ(NameAt(*dump, 0x1000, 10), "first");
  EXPECT_EQ(NameAt(*dump, 0x1030, 19), "first");
  EXPECT_EQ(NameAt(*dump, 0x1030, 20), "second");
  EXPECT_EQ(NameAt(*dump, 0x101f, 29), "first");
  EXPECT_EQ(NameAt(*dump, 0x101f, 30), "third");
  EXPECT_EQ(NameAt(*dump, 0x1020, 30), "second");
  EXPECT_EQ(NameAt(*dump, 0x1060, 30), "");
  EXPECT_EQ(NameAt(*dump, 0xfff, 30), "");
}

TEST_P(JitDumpTest, SvmaIsThePlaceInTheFile) {
  FakeJitDump fake(GetParam());
  fake.Load(10, 0x1000, 0x40, "a", 0);
  fake.Load(20, 0x1000, 0x40, "bc", 1);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  // header 40, record 16 + 40, name 2: code; record 16 + 40, name 3.
  EXPECT_EQ(dump->Find(Avma(0x1004), 15)->SvmaOf(Avma(0x1004)), Svma(40 + 58 + 4));
  EXPECT_EQ(dump->Find(Avma(0x1004), 25)->SvmaOf(Avma(0x1004)), Svma(40 + 58 + 0x40 + 59 + 4));
  EXPECT_EQ(dump->FindBySvma(Svma(40 + 58))->name, "a");
  EXPECT_EQ(dump->FindBySvma(Svma(40 + 58 + 0x40)), nullptr) << "the next record's header";
  EXPECT_EQ(dump->FindBySvma(Svma(40 + 58 + 0x40 + 59))->name, "bc");
  EXPECT_EQ(dump->FindBySvma(Svma(0)), nullptr);
}

TEST_P(JitDumpTest, MovedCodeIsAtItsNewPlaceToo) {
  FakeJitDump fake(GetParam());
  fake.Load(10, 0x1000, 0x40, "moves", 7);
  fake.Load(20, 0x2000, 0x40, "stays", 8);
  fake.Move(30, 0x1000, 0x2000, 0x40, 7);
  fake.Move(40, 0x9000, 0x3000, 0x40, 99);  // of no code
  fake.Load(50, 0x1000, 0x40, "new", 9);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_EQ(NameAt(*dump, 0x2000, 29), "stays");
  EXPECT_EQ(NameAt(*dump, 0x2010, 30), "moves");
  EXPECT_EQ(dump->Find(Avma(0x2010), 30)->SvmaOf(Avma(0x2010)),
            dump->Find(Avma(0x1010), 30)->SvmaOf(Avma(0x1010)));
  EXPECT_EQ(NameAt(*dump, 0x1000, 50), "new");
  EXPECT_EQ(dump->bad_records(), 1U);
}

TEST_P(JitDumpTest, LinesBelongToTheCodeThatFollows) {
  FakeJitDump fake(GetParam());
  fake.Lines(1, 0x1000, {{0x1010, 12, "a.js"}, {0x1000, 11, "\xff"}, {0x1020, 3, "b.js"}});
  fake.UnwindingInfo(2, std::vector<uint8_t>(24, 1));
  fake.Load(10, 0x1000, 0x40, "lined", 0);
  fake.Load(20, 0x2000, 0x40, "plain", 1);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  const JitCode* code = dump->Find(Avma(0x1000), 10);
  ASSERT_NE(code, nullptr);
  const auto lines = dump->LinesOf(*code);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].offset, 0U);
  EXPECT_EQ(lines[0].line, 11U);
  EXPECT_EQ(lines[0].file, "a.js") << "0xff stands for the file before";
  EXPECT_EQ(lines[2].offset, 0x20U);
  EXPECT_EQ(lines[2].file, "b.js");
  EXPECT_EQ(code->eh_frame.size(), 24U);
  const JitCode* plain = dump->Find(Avma(0x2000), 20);
  EXPECT_EQ(plain->line_count, 0U);
  EXPECT_TRUE(plain->eh_frame.empty());
}

TEST(JitDump, LinesOfV8AreAnElfHeaderTooHigh) {
  FakeJitDump fake;
  fake.Lines(1, 0x1000, {{0x1040, 11, "a.js"}, {0x1044, 12, "a.js"}});
  fake.Load(10, 0x1000, 0x40, "f", 0);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->LinesOf(dump->codes()[0])[0].offset, 0U);
  EXPECT_EQ(dump->LinesOf(dump->codes()[0])[1].offset, 4U);
}

TEST(JitDump, NothingBehindCloseCounts) {
  FakeJitDump fake(Endian::kLittle, 1);
  fake.Load(10, 0x1000, 0x40, "a", 0);
  fake.Record(77, 11, {1, 2, 3});  // of a later version
  fake.Close(20);
  fake.Load(30, 0x1000, 0x40, "b", 1);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_TRUE(dump->has_cpu_clock());
  EXPECT_EQ(dump->codes().size(), 1U);
  EXPECT_EQ(dump->bad_records(), 0U);
}

TEST(JitDump, BadRecordsAreCounted) {
  FakeJitDump fake;
  fake.Load(10, 0x1000, 0x40, "good", 0);
  fake.Record(0, 11, std::vector<uint8_t>(20));         // too short
  fake.Load(12, UINT64_MAX - 2, 0x40, "runs over", 1);  // past the end of addresses
  fake.Load(13, 0x1000, 0, "empty", 2);
  fake.Record(2, 14, std::vector<uint8_t>(16, 0xff));  // 2^64 lines
  fake.Record(4, 15, std::vector<uint8_t>(24, 0xff));
  fake.Load(16, 0x2000, 0x40, "good too", 3);
  std::vector<uint8_t> bytes = fake.Take();
  bytes.resize(bytes.size() + 16, 0xee);  // a record of 0xeeeeeeee bytes
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->bad_records(), 6U);
  EXPECT_EQ(dump->codes().size(), 2U);
  EXPECT_EQ(NameAt(*dump, 0x2000, 16), "good too");
}

TEST(JitDump, LinesOfADamagedRecordAreNoOnes) {
  FakeJitDump fake;
  ByteWriter lines(Endian::kLittle);
  lines.U64(0x1000);
  lines.U64(3);
  for (const uint64_t address : {0x1020, 0x1010}) {
    lines.U64(address);
    lines.U64(1);
    lines.Text("a.js");
    lines.U8(0);
  }
  fake.Record(2, 1, lines.Take());  // the third is missing
  fake.Load(2, 0x1000, 0x40, "f", 0);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->bad_records(), 1U);
  EXPECT_TRUE(dump->LinesOf(dump->codes()[0]).empty());
}

TEST(JitDump, CodeThatWasMovedInPartIsFoundWhole) {
  FakeJitDump fake;
  fake.Load(1, 0x1000, 0x40, "f", 0);
  fake.Move(2, 0x1000, 0x2000, 0x10, 0);
  fake.Move(3, 0x1000, 0x3000, 0, 0);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->bad_records(), 1U) << "of nothing";
  ASSERT_EQ(dump->codes().size(), 2U);
  const Svma last(dump->codes()[0].offset + 0x3f);
  ASSERT_NE(dump->FindBySvma(last), nullptr);
  EXPECT_EQ(dump->FindBySvma(last)->size, 0x40U);
}

TEST(JitDump, OtherFilesAreRefused) {
  EXPECT_FALSE(JitDump::Parse({}));
  const std::vector<uint8_t> zeros(64);
  EXPECT_FALSE(JitDump::Parse(zeros));
}

TEST(JitDump, CodesThatAllOverlapAreFoundFast) {
  FakeJitDump fake;
  for (uint64_t i = 0; i < 2000; ++i) fake.Load(i, 0x1000 + 64 * i, 64, "f" + std::to_string(i), i);
  fake.Load(5000, 0, 0x40000, "all", 5000);
  const std::vector<uint8_t> bytes = fake.Take();
  const auto dump = JitDump::Parse(bytes);
  ASSERT_TRUE(dump);
  for (uint64_t i = 0; i < 2000; ++i) {
    EXPECT_EQ(NameAt(*dump, 0x1000 + 64 * i + 63, 4999), "f" + std::to_string(i));
    EXPECT_EQ(NameAt(*dump, 0x1000 + 64 * i, 5000), "all");
  }
}

}  // namespace
}  // namespace stackreel::session
