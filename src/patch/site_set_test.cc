#include "patch/site_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "patch/fake_site.h"
#include "patch/still_process.h"

namespace stackreel::patch {
namespace {

using testing::ElementsAre;
class SiteSetTest : public testing::Test {
 protected:
  using enum SiteState;
  SiteSetTest()
      : all_({FakeTrap(0x5000), FakeNop(0x1000), FakeJump(0x2000), FakeShortJump(0x3000)}),
        process_(all_) {
    for (const Site& site : all_) EXPECT_TRUE(set_.Add(site));
  }
  [[nodiscard]] std::vector<SiteState> States() const {
    std::vector<SiteState> states;
    for (size_t i = 0; i < set_.size(); ++i) states.push_back(set_.state(i));
    return states;
  }
  Outcome Patch(std::vector<size_t> which, SwitchMode mode = SwitchMode::kTrap) {
    return set_.Patch(which, process_.process(), mode);
  }
  Outcome Unpatch(std::vector<size_t> which) {
    return set_.Unpatch(which, process_.process(), SwitchMode::kTrap);
  }
  std::vector<Site> all_;
  StillProcess process_;
  SiteSet set_;
};

TEST_F(SiteSetTest, SitesMustNotOverlap) {
  EXPECT_EQ(set_.Add(FakeNop(0x1004)).error(), Refusal::kOverlap);
  EXPECT_EQ(set_.Add(FakeNop(0x0ffc)).error(), Refusal::kOverlap);
  EXPECT_EQ(set_.Add(FakeNop(0x1000)).error(), Refusal::kOverlap);
  EXPECT_EQ(set_.Add(FakeNop(0x2ff7)).error(), Refusal::kOverlap) << "padding is part of a site";
  EXPECT_EQ(set_.Add(FakeNop(0x1005)), 4U);
  EXPECT_EQ(set_.Add(FakeNop(0x0ffb)), 5U);
}

TEST_F(SiteSetTest, WhatIsForgottenIsLeftAlone) {
  EXPECT_FALSE(Patch({0, 1, 2}).error);
  set_.Forget(1);
  EXPECT_EQ(set_.state(1), kGone);
  EXPECT_FALSE(Unpatch({1}).error);
  EXPECT_FALSE(Patch({1}).error);
  EXPECT_FALSE(set_.Recover(process_.process(), SwitchMode::kTrap).error);
  EXPECT_THAT(States(), ElementsAre(kOriginal, kGone, kOriginal, kOriginal));
  EXPECT_EQ(process_.FormOf(all_[1]), MemoryForm::kPatched) << "somebody else's by now";
}

TEST_F(SiteSetTest, OthersMayTakeTheForgottensPlace) {
  set_.Forget(1);
  EXPECT_EQ(set_.Add(FakeNop(0x1002)), 4U);
  EXPECT_FALSE(set_.Revive(1)) << "they are there";
  EXPECT_EQ(set_.state(1), kGone);
  set_.Forget(4);
  EXPECT_TRUE(set_.Revive(1));
  EXPECT_EQ(set_.state(1), kOriginal);
  EXPECT_EQ(set_.Add(FakeNop(0x1002)).error(), Refusal::kOverlap);
}

TEST_F(SiteSetTest, OnlyWhatIsNamedIsSwitched) {
  EXPECT_FALSE(Patch({1, 0, 1}).error);
  EXPECT_THAT(States(), ElementsAre(kPatched, kPatched, kOriginal, kOriginal));
  EXPECT_FALSE(Patch({2, 0}).error);
  EXPECT_THAT(States(), ElementsAre(kPatched, kPatched, kPatched, kOriginal));
  EXPECT_THAT(process_.published, ElementsAre(EntryToStub(all_[0])))
      << "the entry of a trap that stays outlives other batches";
  EXPECT_FALSE(Unpatch({1, 3}).error);
  EXPECT_THAT(States(), ElementsAre(kPatched, kOriginal, kPatched, kOriginal));
  EXPECT_THAT(process_.published, ElementsAre(EntryToStub(all_[0])));
  EXPECT_EQ(set_.Count(kPatched), 2U);
}

TEST_F(SiteSetTest, NothingToDoIsNoBatch) {
  Patch({1});
  const int syncs = process_.syncs;
  Patch({1});
  Unpatch({2, 3});
  Patch({});
  EXPECT_EQ(process_.syncs, syncs);
}

TEST_F(SiteSetTest, ATrapIsRefusedWhereSignalsAreBlocked) {
  const Outcome outcome = Patch({0, 1}, SwitchMode::kStopped);
  EXPECT_THAT(outcome.refused, ElementsAre(testing::Pair(0U, Refusal::kTrapBlocked)));
  EXPECT_THAT(States(), ElementsAre(kOriginal, kPatched, kOriginal, kOriginal));
}

TEST_F(SiteSetTest, RetryPatchesWhatWasDeferred) {
  process_.held_up = true;
  Patch({2});
  EXPECT_THAT(States(), ElementsAre(kOriginal, kOriginal, kDeferred, kOriginal));
  process_.held_up = false;
  EXPECT_FALSE(set_.Retry(process_.process(), SwitchMode::kTrap).error);
  EXPECT_THAT(States(), ElementsAre(kOriginal, kOriginal, kPatched, kOriginal));
}

TEST_F(SiteSetTest, WhatIsUnpatchedIsWantedNoMore) {
  process_.held_up = true;
  Patch({2});
  Unpatch({2});
  process_.held_up = false;
  set_.Retry(process_.process(), SwitchMode::kTrap);
  EXPECT_EQ(set_.state(2), kOriginal);
}

TEST_F(SiteSetTest, RetryRestoresWhatIsAside) {
  Patch({3});
  process_.held_up = true;
  Unpatch({3});
  EXPECT_EQ(set_.state(3), kAsideLeft);
  EXPECT_EQ(process_.FormOf(all_[3]), MemoryForm::kAsideLeft);
  process_.held_up = false;
  set_.Retry(process_.process(), SwitchMode::kTrap);
  EXPECT_EQ(set_.state(3), kOriginal);
  EXPECT_EQ(process_.FormOf(all_[3]), MemoryForm::kOriginal);
}

TEST_F(SiteSetTest, PatchingCompletesWhatWasLeftAside) {
  Patch({3});
  process_.held_up = true;
  Unpatch({3});
  process_.held_up = false;
  Patch({3});
  EXPECT_EQ(set_.state(3), kPatched);
}

// A tracer has died, in the midst of patching one and unpatching another.
TEST_F(SiteSetTest, RecoveryNeedsOnlySitesAndMemory) {
  process_.Put(all_[1], SiteBytes(Hex("cc 1f 44 00 00")));
  process_.Put(all_[2], all_[2].patched);
  process_.Put(all_[3], SiteBytes(Hex("e9 00 00 01 00 cc 5d")));
  SiteSet other;
  for (const Site& site : all_) ASSERT_TRUE(other.Add(site, kStuck));
  EXPECT_FALSE(other.Recover(process_.process(), SwitchMode::kTrap).error);
  EXPECT_EQ(other.Count(kOriginal), 4U);
  for (const Site& site : all_) EXPECT_EQ(process_.FormOf(site), MemoryForm::kOriginal);
  EXPECT_THAT(process_.published, ElementsAre());
}

}  // namespace
}  // namespace stackreel::patch
