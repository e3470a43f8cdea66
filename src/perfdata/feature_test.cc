#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/byte_writer.h"
#include "perfdata/feature_layout.h"
#include "perfdata/features.h"
#include "perfdata/one_of_each.h"

namespace stackreel::perfdata {
namespace {

using one_of_each::SomeBuildId;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// trace-cmd's head with one tracepoint.
std::vector<uint8_t> TracingDataBytes() {
  ByteWriter out(Endian::kLittle);
  const auto sized = [&out](std::string_view text) {
    out.U64(text.size());
    out.Text(text);
  };
  out.Text("\x17\x08\x44tracing");
  out.Text(std::string_view("0.6\0", 4));
  out.U8(0);
  out.U8(8);
  out.U32(4096);
  out.Text(std::string_view("header_page\0", 12));
  sized("page");
  out.Text(std::string_view("header_event\0", 13));
  sized("event");
  out.U32(1);
  sized("name: function\nID: 1\n");
  out.U32(1);
  out.Text(std::string_view("sched\0", 6));
  out.U32(1);
  sized("name: sched_switch\nID: 317\nformat:\n");
  return out.Take();
}

// A section of each feature with something in it.
std::map<uint32_t, std::vector<uint8_t>> EveryFeature(Endian endian) {
  Attr attr;
  attr.size = 64;
  attr.sample_type = kSampleIp | kSampleTid;
  std::map<uint32_t, std::vector<uint8_t>> sections;
  const auto add = [&](Feature feature, const auto& body) {
    sections[static_cast<uint32_t>(feature)] = EncodeFeature(body, endian);
  };
  add(Feature::kTracingData, TracingData{TracingDataBytes()});
  add(Feature::kBuildId, BuildIdList{{{-1, SomeBuildId(), "[kernel.kallsyms]"},
                                      {7, *BuildId::FromHex("aabb"), "/bin/cat"}},
                                     {1, 2 | kMiscBuildIdSize}});
  add(Feature::kHostname, HostName{"box"});
  add(Feature::kOsRelease, ReleaseText{"6.1"});
  add(Feature::kVersion, ReleaseText{"6.1.9"});
  add(Feature::kArch, ArchText{"x86_64"});
  add(Feature::kNrCpus, NrCpus{4, 2});
  add(Feature::kCpuDesc, CpuText{"Some CPU"});
  add(Feature::kCpuId, CpuText{"A,1,2"});
  add(Feature::kTotalMem, TotalMem{1000});
  add(Feature::kCmdline, Cmdline{{"perf", "record", "-a"}});
  add(Feature::kEventDesc, EventDesc{{{attr, {7, 8}, "cycles"}}});
  add(Feature::kCpuTopology,
      CpuTopology{
          {"0-3"}, {"0-1", "2-3"}, {{0, 0}, {0, 0}, {1, 0}, {1, 0}}, {"0-3"}, {0, 0, 0, 0}});
  add(Feature::kNumaTopology, NumaTopology{{{0, 100, 50, "0-3"}}});
  add(Feature::kBranchStack, NoContent{});
  add(Feature::kPmuMappings, PmuMappings{{{1, "software"}, {4, "cpu"}}});
  add(Feature::kGroupDesc, GroupDesc{{{"", 0, 2}}});
  add(Feature::kAuxtrace, AuxtraceIndex{{{100, 20}, {200, 30}}});
  add(Feature::kStat, NoContent{});
  add(Feature::kCache, CacheFeature{1, {{1, 64, 64, 8, "Data", "32K", "0"}}});
  add(Feature::kSampleTime, SampleTime{1'000'000'001, 2'500'000'000});
  add(Feature::kMemTopology, MemTopology{1, 0x8000000, {{0, 70, {70, {0b1011, 1}}}}});
  add(Feature::kClockid, ClockidResolution{1});
  add(Feature::kDirFormat, DirFormat{1});
  BpfProgInfo program{1, std::vector<uint8_t>(96), {1, 2}};
  std::ranges::copy(std::string_view("handle_exit"), program.info.begin() + 64);
  add(Feature::kBpfProgInfo, BpfProgInfos{{program}});
  add(Feature::kBpfBtf, BtfBlobs{{{5, {1, 2, 3}}}});
  add(Feature::kCompressed, Features::Compressed{1, 1, 3, 49, 528384});
  add(Feature::kCpuPmuCaps, CpuPmuCaps{{{"branches", "32"}}});
  add(Feature::kClockData, ClockData{1, 1, 2, 3});
  add(Feature::kHybridTopology, HybridTopology{{{"cpu_core", "0-1"}, {"cpu_atom", "2-3"}}});
  add(Feature::kPmuCaps, PmuCaps{{{{{"max_precise", "3"}}, "cpu"}}});
  add(Feature::kCpuDomainInfo, CpuDomainInfo{17, 1, {{0, {{0, "SMT", "3", "0-1"}}}}});
  add(Feature::kEMachine, EMachine{62, 0});
  add(Feature::kClnSize, CacheLineSize{64});
  add(Feature::kStackreelPacMask, PacMaskFeature{});
  add(Feature::kStackreelFunctions,
      FunctionNames{1, {{"/bin/prog", {{0x1000, 16, "main"}}}}, {{"[kernel.kallsyms]", {}}}});
  add(Feature::kStackreelAnonymized, AnonymizedMark{});
  add(Feature::kStackreelStackEnds, StackEnds{1, {{90, "root"}, {3, "dump exhausted"}}});
  sections[99] = {1, 2, 3};
  return sections;
}

Features DecodeAll(const std::map<uint32_t, std::vector<uint8_t>>& sections, Endian endian,
                   Counters& counters) {
  Features features;
  for (const auto& [feature, bytes] : sections) {
    DecodeFeature(feature, bytes, endian, features, counters);
  }
  return features;
}

TEST(Features, WhatTheRestUsesIsDecodedInBothByteOrders) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    Counters counters;
    const Features features = DecodeAll(EveryFeature(endian), endian, counters);
    EXPECT_EQ(counters.values().size(), 0u);
    EXPECT_EQ(features.hostname, "box");
    EXPECT_EQ(features.os_release, "6.1");
    EXPECT_EQ(features.version, "6.1.9");
    EXPECT_EQ(features.arch, "x86_64");
    EXPECT_EQ(features.cpu_desc, "Some CPU");
    EXPECT_EQ(features.cpu_id, "A,1,2");
    EXPECT_EQ(features.nr_cpus, std::pair(2u, 4u));  // online, available
    EXPECT_EQ(features.total_mem_kb, 1000u);
    EXPECT_THAT(features.stack_ends,
                ElementsAre(std::pair("dump exhausted", 3u), std::pair("root", 90u)));
    EXPECT_THAT(features.cmdline, ElementsAre("perf", "record", "-a"));
    ASSERT_EQ(features.event_desc.size(), 1u);
    EXPECT_EQ(features.event_desc[0].name, "cycles");
    EXPECT_THAT(features.event_desc[0].ids, ElementsAre(7, 8));
    ASSERT_EQ(features.build_ids.size(), 2u);
    EXPECT_EQ(features.build_ids[0].pid, -1);
    EXPECT_EQ(features.build_ids[1].build_id.ToHex(), "aabb");
    EXPECT_THAT(features.build_id_misc, ElementsAre(1, 2 | kMiscBuildIdSize));
    EXPECT_EQ(features.pmu_names.at(4), "cpu");
    EXPECT_EQ(features.compressed->ratio, 49u);
    EXPECT_EQ(features.clockid_res_ns, 1u);
    EXPECT_EQ(features.tracepoint_names.at(317), "sched:sched_switch");
    EXPECT_EQ(features.sample_time->second, 2'500'000'000u);
    EXPECT_EQ(features.raw.size(), EveryFeature(endian).size());
  }
}

TEST(Features, EverySectionIsEncodedAsItWas) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const auto& [feature, bytes] : EveryFeature(endian)) {
      WithFeatureBody(feature, [&]<typename Body>() {
        const auto body = DecodeFeatureAs<Body>(bytes, endian, /*nr_cpus=*/4);
        ASSERT_TRUE(body.has_value()) << FeatureName(feature);
        EXPECT_EQ(EncodeFeature(*body, endian), bytes) << FeatureName(feature);
      });
    }
  }
}

TEST(Features, EveryCutIsCountedAndStaysRaw) {
  for (const auto& [feature, bytes] : EveryFeature(Endian::kLittle)) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<long>(size));
      Counters counters;
      Features features;
      features.nr_cpus.emplace(4, 4);
      DecodeFeature(feature, cut, Endian::kLittle, features, counters);
      EXPECT_EQ(features.raw.at(feature), cut);
      EXPECT_FALSE(DescribeFeatures(features, Endian::kLittle).empty());
    }
  }
}

TEST(Features, CountsThatTheBytesCannotHoldAreRefused) {
  for (const Feature feature :
       {Feature::kCmdline, Feature::kEventDesc, Feature::kCpuTopology, Feature::kNumaTopology,
        Feature::kPmuMappings, Feature::kGroupDesc, Feature::kBpfProgInfo, Feature::kBpfBtf,
        Feature::kCpuPmuCaps, Feature::kHybridTopology, Feature::kPmuCaps}) {
    ByteWriter out(Endian::kLittle);
    out.U32(0xffffffff);
    out.U32(64);
    out.Zeros(100);
    Counters counters;
    Features features;
    DecodeFeature(static_cast<uint32_t>(feature), out.view(), Endian::kLittle, features, counters);
    EXPECT_EQ(counters.Get("perfdata.bad_feature"), 1u) << FeatureName(uint32_t(feature));
  }
}

// u32 attr_size that the attr inside contradicts.
TEST(Features, EventDescChecksTheAttrsSize) {
  Attr attr;
  attr.size = 64;
  std::vector<uint8_t> bytes = EncodeEventDesc({{attr, {1}, "x"}}, Endian::kLittle);
  StoreUnaligned<uint32_t>(&bytes[4], 56, Endian::kLittle);
  Counters counters;
  Features features;
  DecodeFeature(uint32_t(Feature::kEventDesc), bytes, Endian::kLittle, features, counters);
  EXPECT_EQ(counters.Get("perfdata.bad_feature"), 1u);
  EXPECT_TRUE(features.event_desc.empty());
}

TEST(Features, EventDescGivesAllAttrsTheSizeOfTheLongest) {
  Attr small;
  Attr big;
  big.sample_max_stack = 127;
  const auto bytes = EncodeEventDesc({{small, {1}, "a"}, {big, {2, 3}, "b"}}, Endian::kLittle);
  EXPECT_EQ(LoadUnaligned<uint32_t>(&bytes[4], Endian::kLittle), 112u);
  const auto decoded = DecodeFeatureAs<EventDesc>(bytes, Endian::kLittle);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->events[0].attr.size, 112u);
  EXPECT_EQ(decoded->events[1].attr.sample_max_stack, 127);
  EXPECT_THAT(decoded->events[1].ids, ElementsAre(2, 3));
}

// Files of 2.6.33 to 2.6.35: no pid before the build-id.
TEST(Features, BuildIdsOfTheFirstVersionsHaveNoPid) {
  ByteWriter out(Endian::kLittle);
  for (const std::string_view name : {"[kernel.kallsyms]", "/lib/libc.so"}) {
    out.U32(0);
    out.U16(1);
    out.U16(8 + 24 + 64);
    out.Bytes(SomeBuildId().bytes());
    out.Zeros(4);
    out.Text(name);
    out.Zeros(64 - name.size());
  }
  Counters counters;
  Features features;
  DecodeFeature(uint32_t(Feature::kBuildId), out.view(), Endian::kLittle, features, counters);
  EXPECT_EQ(counters.values().size(), 0u);
  ASSERT_EQ(features.build_ids.size(), 2u);
  EXPECT_EQ(features.build_ids[0].filename, "[kernel.kallsyms]");
  EXPECT_EQ(features.build_ids[0].build_id, SomeBuildId());
  EXPECT_EQ(features.build_ids[1].filename, "/lib/libc.so");
}

TEST(Features, BuildIdEncodingRefusesWhatNoRecordCanHold) {
  HeaderBuildId id{1, SomeBuildId(), std::string(65500, 'x')};
  EXPECT_EQ(EncodeBuildIds({id}, {0}, Endian::kLittle).error().kind, ErrorKind::kUnsupported);
  id.filename = "/bin/cat";
  EXPECT_TRUE(EncodeBuildIds({id}, {}, Endian::kLittle).has_value());
}

TEST(Features, TopologyOfOlderRecordersEndsEarly) {
  CpuTopology lists{{"0-1"}, {"0", "1"}, {}, {}, {}};
  const auto oldest = DecodeFeatureAs<CpuTopology>(EncodeFeature(lists, Endian::kLittle),
                                                   Endian::kLittle, /*nr_cpus=*/2);
  ASSERT_TRUE(oldest.has_value());
  EXPECT_TRUE(oldest->cpus.empty());
  lists.cpus = {{0, 0}, {1, 0}};
  // With and without NRCPUS.
  for (const uint32_t nr_cpus : {0u, 2u}) {
    const auto older = DecodeFeatureAs<CpuTopology>(EncodeFeature(lists, Endian::kLittle),
                                                    Endian::kLittle, nr_cpus);
    ASSERT_TRUE(older.has_value());
    EXPECT_EQ(older->cpus.size(), 2u);
    EXPECT_TRUE(older->dies.empty());
  }
}

TEST(Features, SchedulingDomainsHaveNamesFromVersion17On) {
  const CpuDomainInfo info{15, 1, {{0, {{0, "", "3", "0-1"}}}}};
  const auto decoded =
      DecodeFeatureAs<CpuDomainInfo>(EncodeFeature(info, Endian::kLittle), Endian::kLittle);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->cpus[0].domains[0].cpu_list, "0-1");
}

TEST(DescribeFeatures, ShowsEachOne) {
  Counters counters;
  const std::vector<std::string> lines =
      DescribeFeatures(DecodeAll(EveryFeature(Endian::kBig), Endian::kBig, counters), Endian::kBig);
  for (const char* line : {
           "hostname: box",
           "CPUs: 2 online, 4 available",
           "memory: 1000 kB",
           "command line: perf record -a",
           "  CPU 2: core 1, die 0, socket 0",
           "NUMA node 0: 100 kB, 50 kB free, CPUs 0-3",
           "PMU types: software = 1, cpu = 4",
           "group: {cycles,no event 1}",
           "AUX data: 2 records of 50 bytes in all",
           "  L1 Data: 32K, 8 ways, 64 sets, lines of 64 bytes, CPUs 0",
           "samples: from 1.000000001 to 2.500000000 s, 1.499999999 s",
           "  node 0: 512 MB, of 70 blocks 0-1,3,64",
           "compressed with zstd, level 3, ratio 49, buffers of 528384 bytes",
           "PMU cpu: max_precise = 3",
           "PMU cpu_atom is that of CPUs 2-3",
           "  CPU 0: level 0 SMT, CPUs 0-1",
           "ELF machine: 62, flags 0x0",
           "cache line: 64 bytes",
           "FEATURE_99: 0x3 bytes",
           "  sched:sched_switch = 317",
           "  aabb /bin/cat",
           "  00112233445566778899aabbccddeeff01020304 [kernel.kallsyms] (kernel)",
       }) {
    EXPECT_THAT(lines, Contains(line));
  }
  EXPECT_THAT(lines, Contains(StartsWith("event: cycles, type 0, config 0x0, attr size 64")));
  EXPECT_THAT(lines, Contains(HasSubstr("handle_exit")));
}

TEST(DescribeFeatures, ClocksAndSizesAreReadable) {
  const auto text = [](Feature feature, const auto& body) {
    return DescribeFeature(uint32_t(feature), EncodeFeature(body, Endian::kLittle), Endian::kLittle,
                           0)
        .back();
  };
  EXPECT_EQ(text(Feature::kClockData, ClockData{1, 1, 1796009907605674000, 13665260892009}),
            "reference time: 2026-11-30 03:38:27.605674000 UTC is 13665.260892009 s of clock "
            "monotonic");
  EXPECT_THAT(text(Feature::kClockData, ClockData{1, 99, 0, 0}), HasSubstr("1970-01-01 00:00:00"));
  EXPECT_EQ(
      text(Feature::kMemTopology, MemTopology{1, 0x8000000, {{0, 200, {200, {~0ull, 1, 0, 0}}}}}),
      "  node 0: 8320 MB, of 200 blocks 0-64");
  EXPECT_THAT(text(Feature::kMemTopology, MemTopology{1, ~0ull, {{0, 64, {64, {3}}}}}),
              HasSubstr(" TB, of 64 blocks 0-1"));
  EXPECT_EQ(DateText(951782400), "2000-02-29 00:00:00");
  EXPECT_EQ(DateText(UINT64_MAX).substr(0, 5), "32767");
}

TEST(DescribeFeatures, NamesWhatIsAbsent) {
  Features features;
  features.raw[uint32_t(Feature::kHostname)] = EncodeString("box", Endian::kLittle);
  const auto lines = DescribeFeatures(features, Endian::kLittle);
  EXPECT_THAT(lines.back(), StartsWith("absent features: TRACING_DATA BUILD_ID OSRELEASE"));
}

// 64 blocks in 64 words make 64 ranges; more are cut, so that text does not outgrow the file.
TEST(DescribeFeatures, SparseBitmapsAreCutShort) {
  MemTopology memory{1, 1, {{0, 6400, {6400, std::vector<uint64_t>(100, 1)}}}};
  const auto lines = DescribeFeature(uint32_t(Feature::kMemTopology),
                                     EncodeFeature(memory, Endian::kLittle), Endian::kLittle, 0);
  EXPECT_THAT(lines.back(), HasSubstr(",4032,…"));
}

}  // namespace
}  // namespace stackreel::perfdata
