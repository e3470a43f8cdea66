// Recordings that tools of this kind once got wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "anonymize/fake_recording.h"
#include "base/byte_writer.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using fake::Read;
using fake::Recording;
using fake::SomeEvent;
using perfdata::Mmap;
using perfdata::Mmap2;
using perfdata::RecordType;
using testing::SizeIs;

constexpr uint32_t kPid = 10;
constexpr uint64_t kText = 0x555500000000, kKernel = 0xffffffff9a000000;

class CasesTest : public testing::TestWithParam<Endian> {
 protected:
  [[nodiscard]] Recording Mapped(std::vector<perfdata::Event> events) const {
    Recording in(std::move(events), {.endian = GetParam()});
    in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
    in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
    return in;
  }
  [[nodiscard]] Bytes Words(std::initializer_list<uint64_t> words) const {
    ByteWriter out(GetParam());
    for (const uint64_t word : words) out.U64(word);
    return out.Take();
  }
  // A record with this header's size, of these words.
  [[nodiscard]] Bytes RecordOf(RecordType type, std::initializer_list<uint64_t> words) const {
    ByteWriter out(GetParam());
    out.U32(static_cast<uint32_t>(type));
    out.U16(2);
    out.U16(static_cast<uint16_t>(8 + 8 * words.size()));
    for (const uint64_t word : words) out.U64(word);
    return out.Take();
  }
};

// bp_addr is in attrs of every size, bp_len (config2) is not in one of 64 bytes.
TEST_P(CasesTest, AnAttrShorterThanTheFieldsToBeHidden) {
  perfdata::Event breakpoint = SomeEvent(0), probe = SomeEvent(0, 101);
  breakpoint.attr.type = perfdata::kTypeBreakpoint;
  breakpoint.attr.config1 = kText + 8;
  probe.attr.type = 6;
  probe.attr.config1 = kKernel + 8;
  ASSERT_EQ(perfdata::SmallestAttrSize(breakpoint.attr), 64);
  Recording in = Mapped({breakpoint, probe});
  const Read out = fake::Anonymized(in.Finish());
  const auto& events = out.reader->events().events();
  EXPECT_EQ(events[0].attr.size, 64);
  EXPECT_EQ(events[0].attr.config1, out.All<Mmap2>()[0].addr + 8);
  EXPECT_EQ(events[1].attr.config1, 0);
}

// A count is looked at as its byte order has it, and against what the record has.
TEST_P(CasesTest, CountsThatTheRecordDoesNotHold) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 56, uint64_t{0x2000000000000001}}) {
    Recording in = Mapped({SomeEvent(perfdata::kSampleCallchain)});
    in.SampleAt(kPid, kText + 1);
    const uint64_t tid = uint64_t{kPid} << 32 | kPid;
    // identifier, ip, pid and tid, time, nr, and one entry
    in.AddBytes(RecordOf(RecordType::kSample, {100, kText + 1, tid, 1000, count, kText + 2}));
    const Bytes bytes = in.Finish();
    MemorySource source(bytes);
    MemorySink sink, salvaged;
    Options options;
    const auto failed = Anonymize(RereadableRecording(source), sink, fake::SomeKey(), options);
    ASSERT_FALSE(failed) << count;
    EXPECT_EQ(failed.error().kind, ErrorKind::kDamaged);
    options.salvage = true;
    const auto outcome = Anonymize(RereadableRecording(source), salvaged, fake::SomeKey(), options);
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->bad_records, 1);
    EXPECT_THAT(Read(salvaged.bytes()).samples, SizeIs(1));
  }
}

// Two u32 in one word are two numbers in either byte order; what follows them is found.
TEST_P(CasesTest, PairsOfNumbersStayWhatTheyAre) {
  Recording in = Mapped({SomeEvent(perfdata::kSampleCpu | perfdata::kSampleAddr)});
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.tid = 0x01020304;
  sample.cpu = 7;
  sample.ip = kText + 1;
  sample.addr = kText + 2;
  in.AddSample(sample);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_EQ(out.reader->endian(), GetParam());
  const uint64_t text = out.All<Mmap2>()[0].addr;
  EXPECT_EQ(out.samples[0].pid, kPid);
  EXPECT_EQ(out.samples[0].tid, 0x01020304);
  EXPECT_EQ(out.samples[0].cpu, 7);
  EXPECT_EQ(out.samples[0].ip, text + 1);
  EXPECT_EQ(out.samples[0].addr, text + 2);
}

// The id stands at another place in samples than in trailers, and both are found after fields of
// the sample are gone.
TEST_P(CasesTest, EventsAreFoundAfterFieldsWereDropped) {
  std::vector<perfdata::Event> events = {SomeEvent(perfdata::kSamplePhysAddr),
                                         SomeEvent(perfdata::kSamplePhysAddr, 101)};
  for (perfdata::Event& event : events) {
    event.attr.sample_type &= ~uint64_t{perfdata::kSampleIdentifier};
    event.attr.sample_type |= perfdata::kSampleId | perfdata::kSampleWeight;
  }
  events[1].attr.config = 1;
  Recording in = Mapped(events);
  for (uint64_t i = 0; i < 4; ++i) {
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.ip = kText + i;
    sample.weight = 5 + i;
    sample.phys_addr = 0x5ec2e7d474;
    in.AddSample(sample, 2, i % 2);
  }
  const Read out = fake::Anonymized(in.Finish());
  ASSERT_THAT(out.samples, SizeIs(4));
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(out.samples[i].id, 100 + i % 2);
    EXPECT_EQ(out.samples[i].ip, out.All<Mmap2>()[0].addr + i);
    EXPECT_EQ(out.samples[i].weight, 5 + i);
  }
}

// Vector registers follow the others in a block of their own.
TEST_P(CasesTest, RegistersWithVectorsGoWhole) {
  perfdata::Event event = SomeEvent(perfdata::kSampleRegsUser | perfdata::kSampleWeight);
  event.attr.sample_regs_user = 3;
  Recording in = Mapped({event});
  const Bytes secret = Words({0x5ec2e7d474, 0x5ec2e7d474});
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = kText + 1;
  sample.weight = 9;
  sample.regs_user.abi = 2 | perfdata::kRegsAbiSimd;
  sample.regs_user.mask = 3;
  sample.regs_user.values = perfdata::U64Array(secret, GetParam());
  sample.regs_user.vectors = 1;
  sample.regs_user.vector_words = 2;
  sample.regs_user.simd = perfdata::U64Array(secret, GetParam());
  in.AddSample(sample);
  const Bytes bytes = in.Finish();
  ASSERT_NE(AsText(bytes).find(AsText(ByteView(secret).first(8))), std::string_view::npos);
  const Bytes out_bytes = fake::AnonymizedBytes(bytes);
  EXPECT_EQ(AsText(out_bytes).find(AsText(ByteView(secret).first(8))), std::string_view::npos);
  const Read out(out_bytes);
  EXPECT_EQ(out.samples[0].weight, 9);
  EXPECT_FALSE(out.samples[0].Has(perfdata::kSampleRegsUser));
}

// As root, of the kernel only: no process has a mapping.
TEST_P(CasesTest, OnlyKernelSamples) {
  Recording in({SomeEvent(perfdata::kSampleCallchain)}, {.endian = GetParam()});
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
  in.MapKernel(0xffffffffc0300000, 0x4000, 0, "[demo]");
  const Bytes chain = Words({perfdata::kContextKernel, kKernel + 1, 0xffffffffc0300010});
  perfdata::Sample sample;
  sample.ip = kKernel + 1;
  sample.callchain = perfdata::U64Array(chain, GetParam());
  in.AddSample(sample, 1);
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap>();
  ASSERT_THAT(maps, SizeIs(2));
  EXPECT_NE(maps[0].addr, kKernel);
  EXPECT_EQ(out.samples[0].ip, maps[0].addr + 1);
  EXPECT_EQ(out.samples[0].callchain[1], maps[0].addr + 1);
  EXPECT_EQ(out.samples[0].callchain[2], maps[1].addr + 0x10);
}

// Samples in kernel memory that no record maps, of a module without a file too.
TEST_P(CasesTest, NoFeaturesAndNoMappings) {
  for (const auto container : {perfdata::Container::kFile, perfdata::Container::kPipe}) {
    Recording in({SomeEvent(0)}, {.container = container, .endian = GetParam()});
    in.SampleAt(0, kKernel + 1, 1);
    in.SampleAt(kPid, kText + 1);
    const Read out = fake::Anonymized(in.FinishWithoutFeatures());
    ASSERT_THAT(out.samples, SizeIs(2));
    EXPECT_NE(out.samples[0].ip, kKernel + 1);
    EXPECT_EQ(out.samples[0].ip >> 63, 1);
    EXPECT_NE(out.samples[1].ip, kText + 1);
    EXPECT_EQ(out.samples[1].ip % 4096, 1);
  }
}

// Neighbours are those that end where another begins, whichever came last.
TEST_P(CasesTest, NeighboursInAnyOrder) {
  constexpr uint64_t kLib = 0x7f0000000000;
  const std::vector<std::pair<uint64_t, std::string>> parts = {
      {0, "/lib/libc.so"}, {0x4000, "//anon"}, {0x8000, "/lib/libc.so"}, {0xc000, "//anon"}};
  std::vector<size_t> order = {0, 1, 2, 3};
  do {
    Recording in({SomeEvent(0)}, {.endian = GetParam()});
    for (const size_t i : order) {
      const auto& [offset, name] = parts[i];
      in.Map(kPid, kLib + offset, 0x4000, name == "//anon" ? kLib + offset : offset, name);
      in.Map(kPid, kText + (i << 32), 0x1000, 0, "/lib/other" + std::to_string(i));
    }
    const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(maps[2 * i].addr - maps[0].addr, parts[order[i]].first - parts[order[0]].first);
    }
  } while (std::ranges::next_permutation(order).found);
}

INSTANTIATE_TEST_SUITE_P(Endians, CasesTest, testing::Values(Endian::kLittle, Endian::kBig));

}  // namespace
}  // namespace stackreel::anonymize
