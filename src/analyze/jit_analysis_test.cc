// Analysis of code made at run time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/analysis_fixture.h"
#include "session/fake_jit_dump.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextUser;
using perfdata::RecordType;
using testing::ElementsAre;

// JIT code of process 1: "old" until 100, then "new", both at 0x700000.
std::vector<uint8_t> TwoVersions(uint64_t flags = 0) {
  session::FakeJitDump dump(Endian::kLittle, flags);
  dump.Load(10, 0x700000, 0x100, "old", 0);
  dump.Load(100, 0x700000, 0x80, "new", 1);
  return dump.Take();
}

class JitAnalysisTest : public AnalysisTest {
 protected:
  // Samples at times 5, 50 and 150 in 0x700010, called from 0x700090 and f2000.
  void AddSamples(FakeRecording& recording) {
    recording.Mmap(1, 0x700000, 0x1000, 0, "//anon");
    recording.Mmap(1, 0x800000, 0x1000, 0, "/home/me/jit-1.dump");
    MapProgram(recording);
    recording.Comm(1, 1, "js");
    recording.Mmap(1, 0x700000, 0x1000, 0, "//anon");  // mprotect: the code stays
    for (const uint64_t time : {5, 50, 150}) {
      perfdata::Sample sample;
      sample.pid = sample.tid = 1;
      sample.time = 1000 + time;
      sample.ip = 0x700010;
      const std::vector<uint8_t> chain =
          recording.Words({kContextUser, 0x700010, 0x700091, kBias + 0x2010});
      sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
      recording.Sample(sample);
    }
  }
  static std::vector<perfdata::Event> EventOfClock(std::optional<int32_t> clock) {
    std::vector<perfdata::Event> events = {MakeEvent(kChainSample, 1, "e")};
    if (clock) {
      events[0].attr.flags |= perfdata::kAttrUseClockid;
      events[0].attr.clockid = *clock;
    }
    return events;
  }
};

TEST_F(JitAnalysisTest, CodeIsNamedAsItWasAtTheSamplesTime) {
  session::FakeJitDump dump;
  dump.Load(1010, 0x700000, 0x100, "old", 0);
  dump.Load(1100, 0x700000, 0x80, "new", 1);
  files_.elf["/home/me/jit-1.dump"] = dump.Take();
  FakeRecording recording(EventOfClock(1));
  AddSamples(recording);
  EXPECT_THAT(Run(recording), ElementsAre("js: 700010 700091' f2000'", "js: old old' f2000'",
                                          "js: new old' f2000'"));
  EXPECT_EQ(counters_.Get("analyze.jit_clock_unknown"), 0U);
}

TEST_F(JitAnalysisTest, WithoutACommonClockTheLastCodeCounts) {
  files_.elf["/home/me/jit-1.dump"] = TwoVersions();
  for (const std::optional<int32_t> clock : {std::optional<int32_t>(), std::optional<int32_t>(4)}) {
    FakeRecording recording(EventOfClock(clock));
    AddSamples(recording);
    EXPECT_THAT(Run(recording),
                ElementsAre("js: new old' f2000'", "js: new old' f2000'", "js: new old' f2000'"));
    EXPECT_EQ(counters_.Get("analyze.jit_clock_unknown"), 3U);
  }
}

TEST_F(JitAnalysisTest, WhoAsksGetsThePlacesInMemory) {
  files_.elf["/home/me/jit-1.dump"] = TwoVersions();
  AnalysisOptions options;
  options.jit_code = false;
  FakeRecording recording(EventOfClock(1));
  AddSamples(recording);
  EXPECT_THAT(Run(recording, options), testing::Each("js: 700010 700091' f2000'"));
}

TEST_F(JitAnalysisTest, TimesOfTheCpusCounterAreConverted) {
  files_.elf["/home/me/jit-1.dump"] = TwoVersions(/*flags=*/1);
  FakeRecording recording(EventOfClock(std::nullopt));
  perfdata::TimeConv conversion;  // time = 1000 + tsc * 3 / 4
  conversion.shift = 2;
  conversion.mult = 3;
  conversion.zero = 1000;
  recording.Add(RecordType::kTimeConv, 0, conversion);
  AddSamples(recording);
  EXPECT_THAT(Run(recording), ElementsAre("js: 700010 700091' f2000'", "js: old old' f2000'",
                                          "js: new old' f2000'"));
}

TEST_F(JitAnalysisTest, StacksAreUnwoundByItsCallFrameInformation) {
  constexpr uint64_t kStart = 0x700000;
  constexpr uint64_t kSize = 0x13;
  // The caller's return address is three words up, and no frame pointer leads there.
  dwarf::FrameBuilder frames(Svma(kStart + 0x18));
  dwarf::NewCie cie;
  cie.augmentation = "zR";
  cie.fde_encoding = 0x1b;  // DW_EH_PE_pcrel | sdata4
  frames.AddFde(frames.AddCie(cie), kStart, kSize, dwarf::CfaCode().DefCfaOffset(32));
  session::FakeJitDump dump;
  dump.UnwindingInfo(1, frames.view());
  dump.Load(1, kStart, kSize, "jitted", 0);
  files_.elf["/home/me/jit-1.dump"] = dump.Take();

  FakeRecording recording(
      {MakeEvent(kPlainSample | perfdata::kSampleRegsUser | perfdata::kSampleStackUser, 1, "e")});
  recording.Mmap(1, kStart, 0x1000, 0, "//anon");
  recording.Mmap(1, 0x800000, 0x1000, 0, "/home/me/jit-1.dump");
  MapProgram(recording);
  recording.Comm(1, 1, "js");
  perfdata::Sample sample;
  sample.regs_user.abi = 2;
  sample.regs_user.mask = kRegisterMask;
  std::vector<uint64_t> registers(20);
  registers[kSpIndex] = 0x7ffd0000;
  registers[kIpIndex] = kStart + 4;
  const std::vector<uint8_t> register_words = recording.Words(registers);
  sample.regs_user.values = perfdata::U64Array(register_words, Endian::kLittle);
  const std::vector<uint8_t> stack = recording.Words({1, 2, 3, kBias + 0x1010, kBias + 0x4010, 0});
  sample.stack_user = stack;
  sample.stack_user_size = 4096;
  recording.Sample(sample);
  EXPECT_THAT(Run(recording), ElementsAre("js: jitted f1000' start' | root"));
}

TEST_F(JitAnalysisTest, ABadDumpNamesNothing) {
  files_.elf["/home/me/jit-1.dump"] = {1, 2, 3};
  FakeRecording recording(EventOfClock(1));
  AddSamples(recording);
  EXPECT_THAT(Run(recording), testing::Each("js: 700010 700091' f2000'"));
}

}  // namespace
}  // namespace stackreel::analyze
