// Analysis of samples with dumped stacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/analysis_fixture.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextKernel;
using perfdata::kContextUser;
using testing::ElementsAre;
using testing::SizeIs;

// Samples with registers and a stack.
constexpr uint64_t kStackSample =
    kChainSample | perfdata::kSampleRegsUser | perfdata::kSampleStackUser;

struct StackSample {
  StackSample(uint64_t pc, const std::vector<uint64_t>& words, FakeRecording& recording) {
    constexpr size_t kRegisters = 20;  // popcount of the mask
    std::vector<uint64_t> values(kRegisters);
    values[kSpIndex] = 0x7ffc00001000;
    values[kIpIndex] = pc;
    registers = recording.Words(values);
    stack = recording.Words(words);
    sample.ip = pc;
    sample.regs_user.abi = 2;
    sample.regs_user.mask = kRegisterMask;
    sample.regs_user.values = perfdata::U64Array(registers, Endian::kLittle);
    sample.stack_user = stack;
    sample.stack_user_size = 4096;
  }
  std::vector<uint8_t> registers, stack;
  perfdata::Sample sample;
};

TEST_F(AnalysisTest, UnwindsDumpedStacks) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  MapProgram(recording);
  StackSample stack(kBias + 0x1010, {kBias + 0x2020, kBias + 0x3030, kBias + 0x4040}, recording);
  recording.Sample(stack.sample);
  const auto chain = recording.Words({kContextKernel, kKernelText + 0x110});
  stack.sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
  recording.Sample(stack.sample, kKernelMode);
  EXPECT_THAT(Run(recording), ElementsAre(":1: f1000 f2000' f3000' start' | root",
                                          ":1: k:k_inner f1000 f2000' f3000' start' | root"));
  EXPECT_EQ(result_.user_stacks, 2U);
  EXPECT_EQ(result_.complete_stacks, 2U);
}

TEST_F(AnalysisTest, UnwindsWithTheMapsOfTheTime) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  StackSample stack(kBias + 0x1010, {kBias + 0x4040}, recording);
  recording.Sample(stack.sample);
  recording.Mmap(1, kBias, 0x10000, 0, "/other");
  recording.Sample(stack.sample);
  const std::vector<std::string> lines = Run(recording);
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(lines[0], ":1: f1000 start' | root");
  EXPECT_EQ(lines[1].substr(0, 16), ":1: 555500001010");
}

TEST_F(AnalysisTest, OuterFramesAreSharedOnlyWhereTheyAreTheSame) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  const uint64_t unknown = kBias + 0x3800;  // of no function
  StackSample deep(kBias + 0x1010, {kBias + 0x2020, kBias + 0x3030, kBias + 0x4040}, recording);
  StackSample inner(kBias + 0x2010, {kBias + 0x3030, kBias + 0x4040}, recording);
  StackSample cut(kBias + 0x1010, {kBias + 0x2020, unknown}, recording);
  std::vector<std::string> expected;
  const auto add = [&](const StackSample& stack, uint32_t tid, const std::string& frames) {
    perfdata::Sample sample = stack.sample;
    sample.pid = 1;
    sample.tid = tid;
    recording.Sample(sample);
    expected.push_back(":" + std::to_string(tid) + ": " + frames);
  };
  for (int i = 0; i < 50; ++i) {
    add(deep, 1, "f1000 f2000' f3000'");
    add(inner, 1, "f2000 f3000' start' | root");
    add(deep, 9, "f1000 f2000' f3000'");
    add(deep, 2, "f1000 f2000' f3000'");
    add(deep, 9, "f1000 f2000' f3000'");
    add(cut, 2, "f1000 f2000' 555500003800'");
    add(cut, 2, "f1000 f2000' 555500003800'");
  }
  // The same addresses are now code that lay one function further on.
  recording.Mmap(1, kBias + 0x1000, 0x3000, TextOffset(files_.elf["/bin/prog"]) + 0x1000,
                 "/bin/prog");
  add(deep, 1, "f2000 f3000' start'");
  bytes_ = recording.Take();
  AnalysisOptions options;
  options.max_frames = 3;
  for (Executor* executor : std::initializer_list<Executor*>{&inline_, &backward_}) {
    executor_ = executor;
    for (const bool by_portions : {false, true}) {
      by_portions_ = by_portions;
      std::vector<std::string> lines = RunBytes(options);
      ASSERT_THAT(lines, SizeIs(expected.size()));
      for (size_t i = 0; i < lines.size(); ++i) {
        ASSERT_EQ(lines[i].substr(0, expected[i].size()), expected[i]) << i;
      }
      EXPECT_EQ(result_.unresolved_frames, 100U);
    }
  }
}

TEST_F(AnalysisTest, NotUnwindingIsAnOption) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  recording.Sample(StackSample(kBias + 0x1010, {kBias + 0x4040}, recording).sample);
  AnalysisOptions options;
  options.unwind = false;
  EXPECT_THAT(Run(recording, options), ElementsAre(":1: (empty) f1000"));
}

TEST_F(AnalysisTest, KernelThreadsHaveNoUserStack) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  perfdata::Sample sample;
  sample.ip = kKernelText;
  recording.Sample(sample, kKernelMode);
  EXPECT_THAT(Run(recording), ElementsAre(":1: (empty) k:ffffffff81000000"));
  EXPECT_EQ(result_.user_stacks, 0U);
}

TEST_F(AnalysisTest, CutStacksGoOnWithTheKernelsChain) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  MapProgram(recording);
  StackSample stack(kBias + 0x1010, {kBias + 0x2020}, recording);
  stack.sample.stack_user_size = 8;  // all that was asked for
  const auto chain = recording.Words(
      {kContextUser, kBias + 0x1010, kBias + 0x2020, kBias + 0x3030, kBias + 0x4040});
  stack.sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
  recording.Sample(stack.sample);
  EXPECT_THAT(Run(recording), ElementsAre(":1: f1000 f2000' f3000' start' | dump exhausted"));
}

TEST_F(AnalysisTest, AtMostSoManyFrames) {
  FakeRecording recording({MakeEvent(kStackSample, 1, "e")});
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  MapProgram(recording);
  StackSample stack(kBias + 0x1010, {kBias + 0x2020, kBias + 0x4040}, recording);
  const auto chain = recording.Words({kContextKernel, kKernelText + 0x110});
  stack.sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
  recording.Sample(stack.sample, kKernelMode);
  AnalysisOptions options;
  options.max_frames = 2;
  EXPECT_THAT(Run(recording, options), ElementsAre(":1: k:k_inner f1000 | frame limit"));
}

TEST_F(AnalysisTest, ManySamplesStayInOrder) {
  FakeRecording recording;
  MapProgram(recording);
  std::vector<std::string> expected;
  expected.reserve(2'000);
  for (uint64_t i = 0; i < 2'000; ++i) {
    recording.Chain({kContextUser, 0x10000 + i});
    char line[32];
    std::snprintf(line, sizeof line, ":1: %llx", static_cast<unsigned long long>(0x10000 + i));
    expected.emplace_back(line);
  }
  EXPECT_EQ(Run(recording), expected);
  EXPECT_EQ(result_.samples, 2'000U);
}

}  // namespace
}  // namespace stackreel::analyze
