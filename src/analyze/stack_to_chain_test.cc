#include "analyze/stack_to_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stackreel::analyze {
namespace {

using perfdata::kContextKernel;
using perfdata::kContextUser;
using ::testing::ElementsAre;
using unwind::StackEnd;

std::vector<uint64_t> Chain(const std::vector<uint64_t>& recorded,
                            const std::vector<uint64_t>& frames, StackEnd end) {
  perfdata::Sample sample;
  sample.callchain = perfdata::U64Array(
      {reinterpret_cast<const uint8_t*>(recorded.data()), recorded.size() * 8}, kNativeEndian);
  std::vector<unwind::Frame> unwound;
  for (const uint64_t ip : frames) {
    unwind::Frame frame;
    frame.address.avma = Avma(ip);
    unwound.push_back(frame);
  }
  std::vector<uint64_t> out;
  BuildCallchain(sample, unwound, end, out);
  return out;
}

TEST(BuildCallchain, KernelPartThenUnwoundFrames) {
  EXPECT_THAT(Chain({kContextKernel, 0xf1, 0xf2, kContextUser, 0x10, 0x99}, {0x10, 0x20, 0x30},
                    StackEnd::kRoot),
              ElementsAre(kContextKernel, 0xf1, 0xf2, kContextUser, 0x10, 0x20, 0x30));
  EXPECT_THAT(Chain({}, {0x10, 0x20}, StackEnd::kRoot), ElementsAre(kContextUser, 0x10, 0x20));
}

TEST(BuildCallchain, WithoutRegistersTheKernelsChainStays) {
  EXPECT_THAT(Chain({kContextKernel, 0xf1}, {}, StackEnd::kNoRegisters),
              ElementsAre(kContextKernel, 0xf1));
  EXPECT_THAT(Chain({kContextKernel, 0xf1, kContextUser, 0x10}, {}, StackEnd::kNoRegisters),
              ElementsAre(kContextKernel, 0xf1, kContextUser, 0x10));
}

TEST(BuildCallchain, ACutStackGoesOnWithTheFramePointerChain) {
  const std::vector<uint64_t> recorded = {kContextUser, 0x10, 0x30, 0x40, 0x50, 0x60};
  EXPECT_THAT(Chain(recorded, {0x10, 0x20, 0x30, 0x40}, StackEnd::kDumpExhausted),
              ElementsAre(kContextUser, 0x10, 0x20, 0x30, 0x40, 0x50, 0x60));
  // The last unwound frame may be none of the chain's: one with fewer frames inside is.
  EXPECT_THAT(Chain(recorded, {0x10, 0x20, 0x40, 0x77}, StackEnd::kDumpExhausted),
              ElementsAre(kContextUser, 0x10, 0x20, 0x40, 0x50, 0x60));
  // A stack that ended by itself is not touched.
  EXPECT_THAT(Chain(recorded, {0x10, 0x30, 0x40}, StackEnd::kRoot),
              ElementsAre(kContextUser, 0x10, 0x30, 0x40));
}

TEST(BuildCallchain, NothingInCommonAddsNothing) {
  EXPECT_THAT(Chain({kContextUser, 0x10, 0x91, 0x92}, {0x10, 0x20, 0x30}, StackEnd::kDumpExhausted),
              ElementsAre(kContextUser, 0x10, 0x20, 0x30));
  EXPECT_THAT(Chain({kContextUser, 0x10, 0x30}, {0x10, 0x20, 0x30}, StackEnd::kDumpExhausted),
              ElementsAre(kContextUser, 0x10, 0x20, 0x30));
}

TEST(WithoutStack, LeavesACallchainOnly) {
  perfdata::Attr attr;
  attr.sample_type = perfdata::kSampleIp | perfdata::kSampleCallchain | perfdata::kSampleRegsUser |
                     perfdata::kSampleStackUser;
  attr.sample_regs_user = 0xff;
  attr.sample_stack_user = 8192;
  attr.flags = perfdata::kAttrExcludeCallchainUser | perfdata::kAttrFreq;
  const perfdata::Attr out = WithoutStack(attr);
  EXPECT_EQ(out.sample_type,
            static_cast<uint64_t>(perfdata::kSampleIp | perfdata::kSampleCallchain));
  EXPECT_EQ(out.sample_regs_user, 0u);
  EXPECT_EQ(out.sample_stack_user, 0u);
  EXPECT_EQ(out.flags, uint64_t{perfdata::kAttrFreq});
}

}  // namespace
}  // namespace stackreel::analyze
