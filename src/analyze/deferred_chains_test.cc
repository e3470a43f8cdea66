// Analysis of call chains that the kernel tells of later.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/analysis_fixture.h"
#include "analyze/deferred_queue.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextKernel;
using perfdata::kContextUser;
using perfdata::RecordType;
using testing::ElementsAre;

std::vector<uint64_t> Deferred(uint64_t cookie) {
  return {kContextKernel, kKernelText + 0x110, perfdata::kContextUserDeferred, cookie};
}

TEST_F(AnalysisTest, DeferredChainsAreJoined) {
  FakeRecording recording;
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  MapProgram(recording);
  recording.Chain(Deferred(7), kKernelMode, 1);
  recording.Chain(Deferred(7), kKernelMode, 1);
  recording.Chain(Deferred(7), kKernelMode, 2);  // another thread's cookie
  recording.Chain({kContextUser, kBias + 0x3010});
  recording.Add(perfdata::RecordType::kCallchainDeferred, 0,
                perfdata::CallchainDeferred{7, {kContextUser, kBias + 0x1010, kBias + 0x2020}}, 1);
  recording.Add(perfdata::RecordType::kCallchainDeferred, 0,
                perfdata::CallchainDeferred{7, {kContextUser, kBias + 0x4010}}, 2);
  EXPECT_THAT(Run(recording),
              ElementsAre(":1: k:k_inner f1000 f2000'", ":1: k:k_inner f1000 f2000'",
                          ":2: k:k_inner start", ":1: f3000"));
  EXPECT_EQ(counters_.Get("analyze.deferred_chain_missing"), 0U);
}

TEST_F(AnalysisTest, DeferredChainsWithoutCookies) {
  FakeRecording recording;
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  MapProgram(recording);
  recording.Comm(1, 1, "prog");
  const std::vector<uint64_t> chain = {kContextKernel, kKernelText + 0x110,
                                       perfdata::kContextUserDeferred};
  recording.Chain(chain, kKernelMode, 1);
  recording.Chain(chain, kKernelMode, 2);
  recording.Add(RecordType::kCallchainDeferred, 0,
                perfdata::CallchainDeferred{0, {kContextUser, kBias + 0x1010}, false}, 1);
  recording.Chain(chain, kKernelMode, 1);
  recording.Add(RecordType::kCallchainDeferred, 0,
                perfdata::CallchainDeferred{0, {kContextUser, kBias + 0x2010}, false}, 1);
  EXPECT_THAT(Run(recording),
              ElementsAre("prog: k:k_inner f1000", ":2: k:k_inner", "prog: k:k_inner f2000"));
  EXPECT_EQ(counters_.Get("analyze.deferred_chain_missing"), 1U);
}

TEST_F(AnalysisTest, DeferredChainsThatDoNotCome) {
  FakeRecording recording;
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  recording.Chain(Deferred(7), kKernelMode);
  recording.Add(perfdata::RecordType::kCallchainDeferred, 0,
                perfdata::CallchainDeferred{8, {kContextUser, kBias + 0x1010}});
  EXPECT_THAT(Run(recording), ElementsAre(":1: k:k_inner"));
  EXPECT_EQ(counters_.Get("analyze.deferred_chain_missing"), 1U);
  EXPECT_EQ(counters_.Get("analyze.deferred_chain_unclaimed"), 1U);
}

TEST_F(AnalysisTest, WaitingForDeferredChainsIsBounded) {
  FakeRecording recording;
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  recording.Chain(Deferred(7), kKernelMode);
  for (size_t i = 0; i <= DeferredQueue::kMaxSamples; ++i) {
    recording.Chain({kContextUser, 0x1000});
  }
  recording.Add(perfdata::RecordType::kCallchainDeferred, 0,
                perfdata::CallchainDeferred{7, {kContextUser, 0x1000}});
  EXPECT_EQ(Run(recording)[0], ":1: k:k_inner");
  EXPECT_EQ(counters_.Get("analyze.deferred_chain_missing"), 1U);
  EXPECT_EQ(result_.samples, DeferredQueue::kMaxSamples + 2);
}

}  // namespace
}  // namespace stackreel::analyze
