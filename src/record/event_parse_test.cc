#include "record/event_parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "record/recorder.h"

namespace stackreel::record {
namespace {

using perfdata::Attr;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Attr MustParse(const std::string& text) {
  auto event = ParseEvent(text);
  EXPECT_TRUE(event.has_value()) << text << ": " << event.error().message;
  EXPECT_EQ(event->name, text);
  return event->attr;
}

std::string ErrorOf(const std::string& text) {
  const auto event = ParseEvent(text);
  EXPECT_FALSE(event.has_value()) << text;
  return event ? "" : event.error().message;
}

TEST(ParseEvent, Breakpoints) {
  const Attr data = MustParse("mem:0x1234");
  EXPECT_EQ(data.type, 5u);
  EXPECT_EQ(data.bp_type, 3u);
  EXPECT_EQ(data.config1, 0x1234u);
  EXPECT_EQ(data.config2, 4u);
  const Attr written = MustParse("mem:0x1000/8:w:u");
  EXPECT_EQ(written.bp_type, 2u);
  EXPECT_EQ(written.config2, 8u);
  EXPECT_TRUE(written.Has(perfdata::kAttrExcludeKernel));
  EXPECT_EQ(MustParse("mem:4096:x").bp_type, 4u);
  EXPECT_EQ(MustParse("mem:4096:x").config2, sizeof(long));
  EXPECT_TRUE(MustParse("mem:4096:u").Has(perfdata::kAttrExcludeKernel));
  EXPECT_THAT(ErrorOf("mem:main"), HasSubstr("no address"));
  EXPECT_THAT(ErrorOf("mem:0x10/3"), HasSubstr("1, 2, 4 or 8"));
  EXPECT_THAT(ErrorOf("mem:0x10:rx"), HasSubstr("neither r nor w"));
  EXPECT_THAT(ErrorOf("mem:0x10:rr"), HasSubstr("no modifier"));
  EXPECT_THAT(ErrorOf("mem:"), HasSubstr("no address"));
}

TEST(ParseEvent, HardwareSoftwareCacheAndRaw) {
  EXPECT_EQ(MustParse("cycles").type, perfdata::kTypeHardware);
  EXPECT_EQ(MustParse("instructions").config, 1u);
  EXPECT_EQ(MustParse("cpu-clock").type, perfdata::kTypeSoftware);
  EXPECT_EQ(MustParse("cs").config, 3u);
  EXPECT_EQ(MustParse("ref-cycles").config, 9u);
  EXPECT_EQ(MustParse("L1-dcache-loads").type, perfdata::kTypeHwCache);
  EXPECT_EQ(MustParse("L1-dcache-loads").config, 0u);
  EXPECT_EQ(MustParse("L1-dcache-load-misses").config, 0x10000u);
  EXPECT_EQ(MustParse("LLC-store-misses").config, 0x10102u);
  EXPECT_EQ(MustParse("dTLB-prefetches").config, 0x203u);
  EXPECT_EQ(MustParse("r1b0").type, perfdata::kTypeRaw);
  EXPECT_EQ(MustParse("r1b0").config, 0x1b0u);
  EXPECT_EQ(MustParse("rffffffffffffffff").config, ~uint64_t{0});
}

TEST(ParseEvent, ModifiersExcludeWhatIsNotNamed) {
  constexpr uint64_t kRings =
      perfdata::kAttrExcludeUser | perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
  EXPECT_EQ(MustParse("cycles").flags, 0u);
  EXPECT_EQ(MustParse("cycles:u").flags & kRings,
            perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv);
  EXPECT_EQ(MustParse("cycles:k").flags & kRings,
            perfdata::kAttrExcludeUser | perfdata::kAttrExcludeHv);
  EXPECT_EQ(MustParse("cycles:uk").flags & kRings, static_cast<uint64_t>(perfdata::kAttrExcludeHv));
  EXPECT_EQ(MustParse("cycles:G").flags, static_cast<uint64_t>(perfdata::kAttrExcludeHost));
  EXPECT_EQ(MustParse("cycles:pp").flags, uint64_t{2} << 15);
  EXPECT_EQ(MustParse("cycles:P").flags, uint64_t{3} << 15);
  EXPECT_EQ(MustParse("r1b0:uppp").flags & perfdata::kAttrPreciseIpMask, uint64_t{3} << 15);
}

TEST(ParseEvent, RefusesWithTheNearestNames) {
  EXPECT_THAT(ErrorOf("cylces"), HasSubstr("near it: cycles"));
  EXPECT_THAT(ErrorOf("page-fault"), HasSubstr("page-faults"));
  EXPECT_THAT(ErrorOf("L1-dcache-load-miss"), HasSubstr("L1-dcache-load-misses"));
  EXPECT_THAT(ErrorOf("cycles:x"), HasSubstr("'x' is no modifier"));
  EXPECT_EQ(MustParse("cycles:S").sample_type, static_cast<uint64_t>(perfdata::kSampleRead));
  EXPECT_THAT(ErrorOf("cycles:pppp"), HasSubstr("at most three p"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("missing"));
  EXPECT_THAT(ErrorOf("r12345678123456781"), HasSubstr("no event"));
  EXPECT_EQ(ParseEvent("zzzzzzzzzz").error().message, "there is no event 'zzzzzzzzzz'");
}

// A machine whose PMUs and tracepoints are known.
class ParseEventFolders : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "stackreel-events-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    folders_.pmus = folder_ + "/pmus";
    folders_.tracefs = {folder_ + "/absent", folder_ + "/tracing"};
    Put("pmus/cpu/type", "4\n");
    Put("pmus/cpu/format/event", "config:0-7,32-35\n");
    Put("pmus/cpu/format/umask", "config:8-15\n");
    Put("pmus/cpu/format/edge", "config:18\n");
    Put("pmus/cpu/format/ldlat", "config1:0-15\n");
    Put("pmus/cpu/events/cpu-cycles", "event=0x3c,umask=0x01\n");
    Put("tracing/events/sched/sched_switch/id", "314\n");
    Put("tracing/events/sched/sched_wakeup/id", "315\n");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void Put(const std::string& name, const std::string& text) const {
    const std::filesystem::path path = folder_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] Result<perfdata::Event> Parse(const std::string& text) const {
    return ParseEventIn(folders_, text);
  }

  std::string folder_;
  EventFolders folders_;
};

TEST_F(ParseEventFolders, PmuTermsGoIntoTheBitsOfTheirFormat) {
  const auto event = Parse("cpu/event=0x1a2,umask=3,edge,ldlat=30/u");
  ASSERT_TRUE(event.has_value()) << event.error().message;
  EXPECT_EQ(event->attr.type, 4u);
  EXPECT_EQ(event->attr.config, 0x1'0000'0000u | 1u << 18 | 0x300u | 0xa2u);
  EXPECT_EQ(event->attr.config1, 30u);
  EXPECT_TRUE(event->attr.Has(perfdata::kAttrExcludeKernel));
}

TEST_F(ParseEventFolders, PmuEventsByNameAndCommonTerms) {
  EXPECT_EQ(Parse("cpu/cpu-cycles/")->attr.config, 0x13cu);
  const auto event = Parse("cpu/config=0x10,config2=5,period=1000,name=mine/");
  EXPECT_EQ(event->attr.config, 0x10u);
  EXPECT_EQ(event->attr.config2, 5u);
  EXPECT_EQ(event->attr.sample_period_or_freq, 1000u);
  EXPECT_EQ(event->name, "mine");
  EXPECT_TRUE(Parse("cpu/freq=99/")->attr.Has(perfdata::kAttrFreq));
}

TEST_F(ParseEventFolders, PmuMistakesAreNamed) {
  EXPECT_THAT(Parse("gpu/event=1/").error().message, HasSubstr("no PMU 'gpu'; there are cpu"));
  EXPECT_THAT(Parse("cpu/evnt=1/").error().message, HasSubstr("no term 'evnt'; there are config"));
  EXPECT_THAT(Parse("cpu/umask=256/").error().message, HasSubstr("too large"));
  EXPECT_THAT(Parse("cpu/event=x/").error().message, HasSubstr("'x' is not a number"));
  EXPECT_THAT(Parse("cpu/event=1").error().message, HasSubstr("ends with '/'"));
  EXPECT_FALSE(Parse("../cpu/event=1/").has_value());
  EXPECT_FALSE(Parse("cpu/../type=1/").has_value());
}

TEST_F(ParseEventFolders, TracepointsByTheirId) {
  const auto event = Parse("sched:sched_switch");
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->attr.type, perfdata::kTypeTracepoint);
  EXPECT_EQ(event->attr.config, 314u);
  EXPECT_NE(event->attr.sample_type & perfdata::kSampleRaw, 0u);
  EXPECT_TRUE(Parse("sched:sched_switch:k")->attr.Has(perfdata::kAttrExcludeUser));
}

TEST_F(ParseEventFolders, UnknownTracepointsNameTheNearest) {
  EXPECT_THAT(Parse("sched:sched_swich").error().message, HasSubstr("near it: sched_switch"));
  EXPECT_THAT(Parse("shed:x").error().message, HasSubstr("near it: sched"));
  EXPECT_EQ(Parse("sched:").error().kind, ErrorKind::kNotFound);
  folders_.tracefs = {folder_ + "/absent"};
  const auto absent = Parse("sched:sched_switch");
  EXPECT_EQ(absent.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(absent.error().cure, HasSubstr("mount -t tracefs"));
}

TEST(NearestNames, BestFirstAndNoneTooFar) {
  const std::vector<std::string> names = {"faults", "minor-faults", "migrations", "cycles"};
  EXPECT_THAT(NearestNames("fault", names, 2), ElementsAre("faults"));
  EXPECT_TRUE(NearestNames("xyz", names, 2).empty());
}

TEST(BuiltinEventNames, AllParse) {
  for (const std::string& name : BuiltinEventNames()) MustParse(name);
}

TEST(ExpandTracepoints, FindsWhatMatchesAndCanBeRecorded) {
  std::string folder = ::testing::TempDir() + "stackreel-tracefs-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  for (const char* name :
       {"sched/sched_switch", "sched/sched_wakeup", "sched/other", "irq/enter"}) {
    std::filesystem::create_directories(folder + "/events/" + name);
    std::ofstream(folder + "/events/" + name + "/id") << "7\n";
  }
  std::filesystem::create_directories(folder + "/events/sched/sched_no_id");
  std::ofstream(folder + "/events/sched/enable") << "0\n";
  EventFolders folders;
  folders.tracefs = {folder};
  const auto expand = [&](const std::string& text) { return *ExpandTracepoints(folders, text); };
  EXPECT_THAT(expand("sched:sched_*"), ElementsAre("sched:sched_switch", "sched:sched_wakeup"));
  EXPECT_THAT(expand("s*:*:k"),
              ElementsAre("sched:other:k", "sched:sched_switch:k", "sched:sched_wakeup:k"));
  EXPECT_THAT(expand("*:e?ter"), ElementsAre("irq:enter"));
  EXPECT_THAT(expand("cycles:u"), ElementsAre("cycles:u"));
  EXPECT_FALSE(ExpandTracepoints(folders, "sched:none*").has_value());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stackreel::record
