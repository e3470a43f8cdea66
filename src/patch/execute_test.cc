// What an execution does with memory that is not as it should be; the rest is interleaving_test.cc.
#include "patch/execute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "patch/fake_site.h"
#include "patch/still_process.h"

namespace stackreel::patch {
namespace {

using testing::ElementsAre;

class ExecuteTest : public testing::Test {
 protected:
  using enum SiteState;
  ExecuteTest()
      : all_({FakeNop(0x1000), FakeJump(0x2000), FakeShortJump(0x3000), FakeTrap(0x5000)}),
        process_(all_),
        known_(all_.size()) {}

  std::vector<SiteState> Run(Direction direction, SwitchMode mode = SwitchMode::kTrap,
                             std::vector<TrapEntry> standing = {}) {
    std::vector<const Site*> sites;
    for (const Site& site : all_) sites.push_back(&site);
    Execution execution(sites, known_, direction, mode, std::move(standing));
    Execute(execution, process_.process());
    error_ = execution.error();
    return known_ = execution.states();
  }
  const std::vector<Site> all_;
  StillProcess process_;
  std::vector<SiteState> known_;
  std::optional<Error> error_;
};
TEST_F(ExecuteTest, PatchesAndUnpatches) {
  EXPECT_THAT(Run(Direction::kPatch), ElementsAre(kPatched, kPatched, kPatched, kPatched));
  EXPECT_THAT(process_.published, ElementsAre(EntryToStub(all_[3])));
  EXPECT_EQ(process_.syncs, 3);
  EXPECT_EQ(process_.clearings, 1);
  for (const Site& site : all_) EXPECT_EQ(process_.FormOf(site), MemoryForm::kPatched);
  EXPECT_THAT(Run(Direction::kUnpatch), ElementsAre(kOriginal, kOriginal, kOriginal, kOriginal));
  EXPECT_THAT(process_.published, ElementsAre());
  for (const Site& site : all_) EXPECT_EQ(process_.FormOf(site), MemoryForm::kOriginal);
}

TEST_F(ExecuteTest, EntriesOfOtherSitesStay) {
  const TrapEntry other = {Avma(0x4000), Avma(0x7000), Avma(0)};
  Run(Direction::kPatch, SwitchMode::kTrap, {other});
  EXPECT_THAT(process_.published, ElementsAre(other, EntryToStub(all_[3])));
}

TEST_F(ExecuteTest, WhatOthersHaveWrittenIsLeftAlone) {
  const SiteBytes hook{Hex("e9 01 02 03 04")};
  process_.Put(all_[0], hook);
  EXPECT_THAT(Run(Direction::kPatch), ElementsAre(kModified, kPatched, kPatched, kPatched));
  EXPECT_FALSE(error_);
  process_.Put(all_[1], hook);
  EXPECT_THAT(Run(Direction::kUnpatch), ElementsAre(kModified, kModified, kOriginal, kOriginal));
  EXPECT_EQ(process_.FormOf(all_[1]), MemoryForm::kForeign);
}

TEST_F(ExecuteTest, WhatIsUnmappedIsGoneAndTheRestGoesOn) {
  process_.Unmap(all_[2]);
  EXPECT_THAT(Run(Direction::kPatch), ElementsAre(kPatched, kPatched, kGone, kPatched));
  process_.Unmap(all_[0]);
  EXPECT_THAT(Run(Direction::kUnpatch), ElementsAre(kGone, kOriginal, kGone, kOriginal));
  EXPECT_FALSE(error_);
}

TEST_F(ExecuteTest, UnpatchingIsVerified) {
  Run(Direction::kPatch);
  process_.spoiled = Avma(0x2001);
  EXPECT_THAT(Run(Direction::kUnpatch), ElementsAre(kOriginal, kModified, kOriginal, kOriginal));
}

TEST_F(ExecuteTest, NothingIsWrittenWhereTheSitesCannotBeKept) {
  process_.kept = false;
  EXPECT_THAT(Run(Direction::kPatch), ElementsAre(kOriginal, kOriginal, kOriginal, kOriginal));
  EXPECT_TRUE(error_);
  EXPECT_EQ(process_.writes, 0);
}

TEST_F(ExecuteTest, DeferredSitesAreRetried) {
  // The first of the sites is a NOP, in which nobody can be: the word is not taken.
  process_.held_up = true;
  EXPECT_THAT(Run(Direction::kPatch), ElementsAre(kPatched, kPatched, kPatched, kPatched));
  Run(Direction::kUnpatch);
  const Site prologue = all_[1];
  const std::vector<const Site*> sites = {&prologue};
  Execution first(sites, {kOriginal}, Direction::kPatch, SwitchMode::kTrap, {});
  Execute(first, process_.process());
  EXPECT_THAT(first.states(), ElementsAre(kDeferred));
  EXPECT_EQ(process_.FormOf(prologue), MemoryForm::kOriginal);
  EXPECT_THAT(process_.published, ElementsAre()) << "its trap has gone, and so has the entry";
  process_.held_up = false;
  Execution second(sites, first.states(), Direction::kPatch, SwitchMode::kTrap, {});
  Execute(second, process_.process());
  EXPECT_THAT(second.states(), ElementsAre(kPatched));
}

TEST_F(ExecuteTest, UnpatchingWhatIsOriginalDoesNothing) {
  EXPECT_THAT(Run(Direction::kUnpatch), ElementsAre(kOriginal, kOriginal, kOriginal, kOriginal));
  EXPECT_EQ(process_.writes, 0);
}

}  // namespace
}  // namespace stackreel::patch
