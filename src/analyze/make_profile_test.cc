#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/analysis.h"
#include "analyze/fake_recording.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextUser;
using testing::ElementsAre;

class MakeProfileTest : public testing::Test {
 protected:
  MakeProfileTest() {
    files_.elf["/bin/prog"] = MakeFile();
    recording_.Mmap(1, kBias + 0x1000, 0x4000, TextOffset(files_.elf["/bin/prog"]), "/bin/prog");
    recording_.Comm(1, 1, "prog");
  }
  profile::Profile Make(const ProfileOptions& options = {}, const AnalysisOptions& how = {}) {
    bytes_ = recording_.Take();
    return MakeAgain(options, how);
  }
  profile::Profile MakeAgain(const ProfileOptions& options = {}, const AnalysisOptions& how = {}) {
    MemorySource source(bytes_);
    auto reader = perfdata::Reader::Open(source);
    CHECK(reader.has_value());
    Analysis analysis(**reader, files_, *executor_, how);
    auto made = MakeProfile(analysis, options);
    CHECK(made.has_value());
    return std::move(*made);
  }
  static std::vector<std::string> Functions(const profile::Profile& profile,
                                            profile::StackId stack) {
    std::vector<std::string> names;
    for (const profile::FrameId id : profile.FramesOf(stack)) {
      names.emplace_back(profile.Text(profile.frames()[id].function));
    }
    return names;
  }

  FakeFiles files_;
  InlineExecutor inline_;
  BackwardExecutor backward_;
  Executor* executor_ = &inline_;
  FakeRecording recording_;
  std::vector<uint8_t> bytes_;
};

TEST_F(MakeProfileTest, EqualSamplesAreMerged) {
  for (int i = 0; i < 3; ++i) recording_.Chain({kContextUser, kBias + 0x1010, kBias + 0x2020});
  recording_.Chain({kContextUser, kBias + 0x1020, kBias + 0x2030});
  const profile::Profile profile = Make();
  ASSERT_EQ(profile.samples().size(), 1U) << "addresses do not tell frames apart";
  EXPECT_EQ(profile.samples()[0].count, 4U);
  EXPECT_EQ(profile.samples()[0].weight, 4000U);
  EXPECT_EQ(profile.samples()[0].time, 0U);
  EXPECT_EQ(profile.Text(profile.samples()[0].comm), "prog");
  EXPECT_THAT(Functions(profile, profile.samples()[0].stack), ElementsAre("f1000", "f2000"));
  EXPECT_EQ(profile.Text(profile.frames()[0].module), "prog");
  EXPECT_EQ(profile.facts.samples, 4U);
}

TEST_F(MakeProfileTest, TheSameForAnyNumberOfWorkers) {
  for (uint64_t i = 0; i < 2000; ++i) {
    recording_.Chain({kContextUser, kBias + 0x1000 + i % 3, kBias + 0x2001 + i % 7,
                      i % 5 == 0 ? 0x1234 + i % 50 : kBias + 0x3001, kBias + 0x1001 + i % 11});
  }
  ProfileOptions options;
  options.addresses = true;
  const profile::Profile one = Make(options);
  executor_ = &backward_;
  const profile::Profile several = MakeAgain(options);
  EXPECT_EQ(several.frames(), one.frames());
  EXPECT_EQ(several.stacks(), one.stacks());
  ASSERT_EQ(several.samples().size(), one.samples().size());
  for (size_t i = 0; i < one.samples().size(); ++i) {
    EXPECT_EQ(several.samples()[i].stack, one.samples()[i].stack);
    EXPECT_EQ(several.samples()[i].count, one.samples()[i].count);
  }
  EXPECT_EQ(several.facts.unresolved_modules.at("[unknown]").frames, 400U);
  EXPECT_EQ(one.facts.unresolved_modules.at("[unknown]").frames, 400U);
}

TEST_F(MakeProfileTest, TimesKeepSamplesApart) {
  recording_.Chain({kContextUser, kBias + 0x1010});
  recording_.Chain({kContextUser, kBias + 0x1010});
  ProfileOptions options;
  options.times = true;
  const profile::Profile profile = Make(options);
  ASSERT_EQ(profile.samples().size(), 2U);
  EXPECT_LT(profile.samples()[0].time, profile.samples()[1].time);
}

TEST_F(MakeProfileTest, AddressesTellFramesApart) {
  recording_.Chain({kContextUser, kBias + 0x1010});
  recording_.Chain({kContextUser, kBias + 0x1020});
  ProfileOptions options;
  options.addresses = true;
  const profile::Profile profile = Make(options);
  ASSERT_EQ(profile.frames().size(), 2U);
  EXPECT_EQ(profile.frames()[0].address, 0x1010U);
  EXPECT_EQ(profile.frames()[1].address, 0x1020U);
}

TEST_F(MakeProfileTest, UnresolvedFramesAreExplained) {
  recording_.Mmap(1, 0x9000, 0x1000, 0x2000, "/bin/gone");
  recording_.Chain({kContextUser, 0x9010, kBias + 0x1800, 0x123});
  const profile::Profile profile = Make();
  const auto& facts = profile.facts;
  EXPECT_EQ(facts.frames, 3U);
  EXPECT_EQ(facts.unresolved_frames, 3U);
  ASSERT_EQ(facts.unresolved_modules.size(), 3U);
  EXPECT_EQ(facts.unresolved_modules.at("gone").why, "no file");
  EXPECT_EQ(facts.unresolved_modules.at("gone").frames, 1U);
  EXPECT_EQ(facts.unresolved_modules.at("prog").why, "no symbol at these addresses");
  EXPECT_EQ(facts.unresolved_modules.at("[unknown]").why, "no mapping at these addresses");
  EXPECT_EQ(profile.frames()[0].address, 0x123U) << "outermost first; its avma";
  EXPECT_EQ(profile.frames()[2].address, 0x2010U) << "its svma";
}

// The recorder counts how all of its stacks ended, which says nothing of those in a time window.
TEST_F(MakeProfileTest, StackEndsOfTheRecorderAreOfTheWhole) {
  recording_.Chain({kContextUser, kBias + 0x1010});
  recording_.StackEnds({{"root", 1}});
  const profile::Profile profile = Make();
  EXPECT_EQ(profile.facts.samples, 1U);
  EXPECT_EQ(profile.facts.complete_stacks, 1U);
  EXPECT_EQ(profile.facts.user_stacks, 1U);
}

TEST_F(MakeProfileTest, StackEndsOfTheRecorderAreNotOfAPart) {
  recording_.Chain({kContextUser, kBias + 0x1010});
  recording_.StackEnds({{"root", 1}});
  AnalysisOptions options;
  options.filter.time_start = 1'000'000'000;
  const profile::Profile profile = Make({}, options);
  EXPECT_EQ(profile.facts.samples, 0U);
  EXPECT_EQ(profile.facts.complete_stacks, 0U);
  EXPECT_EQ(profile.facts.user_stacks, 0U);
}

}  // namespace
}  // namespace stackreel::analyze
