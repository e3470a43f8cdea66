#include "patch/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "patch/fake_site.h"

namespace stackreel::patch {
namespace {

class PlanTest : public testing::Test {
 protected:
  // One of each kind, by address.
  PlanTest() {
    all_ = {FakeNop(0x1000), FakeJump(0x2000), FakeShortJump(0x3000), FakeSled(0x4000),
            FakeTrap(0x5000)};
    for (const Site& site : all_) sites_.push_back(&site);
  }
  [[nodiscard]] std::string Print(Direction direction, SwitchMode mode) const {
    return ToString(MakePlan(sites_, direction, mode), sites_);
  }
  std::vector<Site> all_;
  std::vector<const Site*> sites_;
};

TEST_F(PlanTest, Patching) {
  EXPECT_EQ(Print(Direction::kPatch, SwitchMode::kTrap), R"(keep
check 0x1000 original
check 0x2000 original
check 0x3000 original
check 0x4000 original
check 0x5000 original
publish to stubs
write 0x1000 head: cc
write 0x2000 head: cc
write 0x2ffb aside: e9 00 00 01 00
write 0x3000 head: cc
write 0x4002 aside: e9 f9 ff 00 00
sync
clear out original
write 0x1001 tail: fb ff 00 00
write 0x2001 tail: fb ff 00 00
write 0x2000 head: 55  if deferred
write 0x3001 tail: f9
write 0x3000 head: 55  if deferred
write 0x2ffb aside: cc cc cc cc cc  if deferred
write 0x4001 head: 00
write 0x5000 head: cc
sync
write 0x1000 head: e9
write 0x2000 head: e9
write 0x3000 head: eb
sync
publish what stands
)");
}

TEST_F(PlanTest, Unpatching) {
  EXPECT_EQ(Print(Direction::kUnpatch, SwitchMode::kTrap), R"(keep
check 0x1000 patched
check 0x2000 patched
check 0x3000 patched
check 0x4000 patched
check 0x5000 patched
publish to out-of-line code
write 0x1000 head: cc
write 0x2000 head: cc
write 0x3000 head: cc
write 0x4001 head: 09
write 0x5000 head: c3
sync
write 0x1001 tail: 1f 44 00 00
write 0x2001 tail: 48 89 e5 48
write 0x3001 tail: 5d
sync
write 0x1000 head: 0f
write 0x2000 head: 55
write 0x3000 head: 55
sync
clear out patched
write 0x2ffb aside: cc cc cc cc cc
write 0x4002 aside: 66 0f 1f 84 00
sync
verify 0x1000 original
verify 0x2000 original
verify 0x3000 original
verify 0x4000 original
verify 0x5000 original
publish what stands
)");
}

TEST_F(PlanTest, WithTheThreadsStoppedEachEntryIsOneWrite) {
  sites_.pop_back();
  EXPECT_EQ(Print(Direction::kPatch, SwitchMode::kStopped), R"(keep
stop
check 0x1000 original
check 0x2000 original
check 0x3000 original
check 0x4000 original
clear out original
write 0x2ffb aside: e9 00 00 01 00
write 0x4002 aside: e9 f9 ff 00 00
write 0x1000 branch: e9 fb ff 00 00
write 0x2000 branch: e9 fb ff 00 00
write 0x3000 branch: eb f9
write 0x4001 branch: 00
sync
resume
)");
  EXPECT_EQ(Print(Direction::kUnpatch, SwitchMode::kStopped), R"(keep
stop
check 0x1000 patched
check 0x2000 patched
check 0x3000 patched
check 0x4000 patched
clear out patched
write 0x1000 branch: 0f 1f 44 00 00
write 0x2000 branch: 55 48 89 e5 48
write 0x3000 branch: 55 5d
write 0x3000 branch: 55 5d  if deferred
write 0x4001 branch: 09
write 0x4001 branch: 09  if deferred
write 0x2ffb aside: cc cc cc cc cc
write 0x4002 aside: 66 0f 1f 84 00
sync
verify 0x1000 original
verify 0x2000 original
verify 0x3000 original
verify 0x4000 original
resume
)");
}

TEST_F(PlanTest, NothingIsDoneThatNoSiteNeeds) {
  const std::vector<const Site*> sled = {&all_[3]};
  const std::string text = ToString(MakePlan(sled, Direction::kPatch, SwitchMode::kTrap), sled);
  EXPECT_EQ(text, R"(keep
check 0x4000 original
write 0x4002 aside: e9 f9 ff 00 00
sync
write 0x4001 head: 00
sync
)");
  const std::vector<const Site*> nop = {&all_[0]};
  for (const Direction direction : {Direction::kPatch, Direction::kUnpatch}) {
    const Plan plan = MakePlan(nop, direction, SwitchMode::kTrap);
    EXPECT_TRUE(std::ranges::none_of(
        plan.steps, [](const Step& step) { return step.kind == StepKind::kClearOut; }));
  }
}

TEST_F(PlanTest, SyncsAndClearingsAreByBatch) {
  std::vector<Site> many;
  for (uint64_t i = 0; i < 1000; ++i) many.push_back(FakeJump(0x100000 + i * 16));
  std::vector<const Site*> sites;
  for (const Site& site : many) sites.push_back(&site);
  const Plan plan = MakePlan(sites, Direction::kPatch, SwitchMode::kTrap);
  const auto count = [&](StepKind kind) {
    return std::ranges::count(plan.steps, kind, &Step::kind);
  };
  EXPECT_EQ(count(StepKind::kSync), 3);
  EXPECT_EQ(count(StepKind::kClearOut), 1);
  EXPECT_EQ(count(StepKind::kPublish), 2);
}

TEST_F(PlanTest, WhatCannotBePatchedWithTheThreadsStoppedIsRefused) {
  for (const Site& site : all_) {
    EXPECT_FALSE(RefusedBy(site, SwitchMode::kTrap));
    const auto expected =
        site.kind == SiteKind::kTrap ? std::optional(Refusal::kTrapBlocked) : std::nullopt;
    EXPECT_EQ(RefusedBy(site, SwitchMode::kStopped), expected);
  }
  EXPECT_EQ(RefusedBy(FakeNop(0x1ffb), SwitchMode::kStopped), std::nullopt);
  EXPECT_EQ(RefusedBy(FakeNop(0x1ffc), SwitchMode::kStopped), Refusal::kCrossesPage);
  EXPECT_EQ(RefusedBy(FakeNop(0x1ffc), SwitchMode::kTrap), std::nullopt);
}

}  // namespace
}  // namespace stackreel::patch
