#include "patch/quiesce.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "patch/fake_site.h"

namespace stackreel::patch {
namespace {

class QuiesceTest : public testing::Test {
 protected:
  // Where a thread goes that is `offset` from the site's address; nothing if it stays; 0 if
  // deferred.
  std::optional<uint64_t> MovedTo(const Site& site, int64_t offset, Form inside,
                                  CodePosition position = {}) {
    const Site* sites[] = {&site};
    position.ip = Avma(site.address.value + static_cast<uint64_t>(offset));
    const ClearDecision decision = DecideClearing(position, sites, inside);
    switch (decision.action) {
      case ClearAction::kLeave:
        return std::nullopt;
      case ClearAction::kMove:
        return decision.to.value;
      case ClearAction::kDefer:
        return 0;
    }
    return 1;
  }
  static constexpr auto kStays = std::nullopt;
  static constexpr uint64_t kOutOfLine = 0x21000;
  static constexpr CodePosition kTrapPending = {.ip = {}, .trap_pending = true};
  static constexpr CodePosition kInSyscall = {.ip = {}, .may_restart = true};
};

TEST_F(QuiesceTest, ThreadsInsideGoOnOutOfLine) {
  const Site site = FakeJump(0x1000);
  EXPECT_EQ(MovedTo(site, -1, Form::kOriginal), kStays);
  EXPECT_EQ(MovedTo(site, 0, Form::kOriginal), kStays);
  EXPECT_EQ(MovedTo(site, 1, Form::kOriginal), kOutOfLine + 1);
  EXPECT_EQ(MovedTo(site, 4, Form::kOriginal), kOutOfLine + 4);
  EXPECT_EQ(MovedTo(site, 8, Form::kOriginal), kStays);
  EXPECT_EQ(MovedTo(site, 2, Form::kOriginal), 0U) << "at no instruction";
}

TEST_F(QuiesceTest, RelocatedInstructionsMayBeLonger) {
  Site site = FakeJump(0x1000);
  site.map = {};
  for (const auto& [from, to] : {std::pair{0, 0}, {1, 1}, {4, 9}, {8, 13}}) {
    site.map.Add({static_cast<uint8_t>(from), static_cast<uint8_t>(to)});
  }
  EXPECT_EQ(MovedTo(site, 4, Form::kOriginal), kOutOfLine + 9);
}

TEST_F(QuiesceTest, AThreadThatMetTheTrapIsLeftToItsHandler) {
  const Site site = FakeJump(0x1000);
  EXPECT_EQ(MovedTo(site, 1, Form::kOriginal, kTrapPending), kStays);
  EXPECT_EQ(MovedTo(site, 4, Form::kOriginal, kTrapPending), 0U) << "another trap, inside";
}

TEST_F(QuiesceTest, NobodyIsInsideOneInstruction) {
  for (const Site& site : {FakeNop(0x1000), FakeCall(0x1000), FakeTrap(0x1000)}) {
    EXPECT_FALSE(NeedsClearing(site, Form::kOriginal));
    EXPECT_FALSE(NeedsClearing(site, Form::kPatched));
    for (int64_t at = 0; at < 6; ++at) EXPECT_EQ(MovedTo(site, at, Form::kOriginal), kStays);
  }
  EXPECT_FALSE(NeedsClearing(FakeJump(0x1000), Form::kPatched));
}

TEST_F(QuiesceTest, OnALandingTheyBeginAgain) {
  const Site sled = FakeSled(0x1000);
  EXPECT_TRUE(NeedsClearing(sled, Form::kPatched));
  EXPECT_FALSE(NeedsClearing(sled, Form::kOriginal));
  EXPECT_EQ(MovedTo(sled, 2, Form::kPatched), 0x1000U);
  EXPECT_EQ(MovedTo(sled, 0, Form::kPatched), kStays);
  EXPECT_EQ(MovedTo(sled, 11, Form::kPatched), kStays);
  const Site padding = FakeShortJump(0x1000);
  EXPECT_EQ(MovedTo(padding, -5, Form::kPatched), 0x1000U);
  EXPECT_EQ(MovedTo(padding, 1, Form::kPatched), kStays);
  EXPECT_EQ(MovedTo(padding, -5, Form::kOriginal), kStays) << "nobody runs padding";
  EXPECT_EQ(MovedTo(padding, 1, Form::kOriginal), kOutOfLine + 1);
}

// syscall; push; syscall: one that may be restarted goes back to its instruction, 2 bytes.
TEST_F(QuiesceTest, ASystemCallMovesWithItsInstruction) {
  Site site = FakeSite(SiteKind::kJump, 0x1000, "0f 05 55 0f 05");
  for (const uint8_t at : {0, 2, 3, 5}) site.map.Add({at, at});
  EXPECT_EQ(MovedTo(site, 0, Form::kOriginal, kInSyscall), kStays) << "the one before";
  EXPECT_EQ(MovedTo(site, 2, Form::kOriginal, kInSyscall), kOutOfLine + 2);
  EXPECT_EQ(MovedTo(site, 5, Form::kOriginal, kInSyscall), kOutOfLine + 5)
      << "ip is behind the site";
  EXPECT_EQ(MovedTo(site, 5, Form::kOriginal), kStays) << "its call is over";
  EXPECT_EQ(MovedTo(site, 7, Form::kOriginal, kInSyscall), kStays);
}

TEST_F(QuiesceTest, TheRightOneOfManySites) {
  std::vector<Site> sites;
  for (uint64_t i = 0; i < 5000; ++i) sites.push_back(FakeJump(0x100000 + i * 8));
  std::vector<const Site*> sorted;
  for (const Site& site : sites) sorted.push_back(&site);
  for (size_t i = 0; i < sites.size(); ++i) {
    const ClearDecision decision =
        DecideClearing({.ip = sites[i].address + 4}, sorted, Form::kOriginal);
    ASSERT_EQ(decision.action, ClearAction::kMove);
    ASSERT_EQ(decision.site, i);
    ASSERT_EQ(decision.to, sites[i].out_of_line + 4);
    ASSERT_EQ(DecideClearing({.ip = sites[i].address}, sorted, Form::kOriginal).action,
              ClearAction::kLeave);
  }
  EXPECT_EQ(DecideClearing({.ip = Avma(0)}, sorted, Form::kOriginal).action, ClearAction::kLeave);
  EXPECT_EQ(DecideClearing({.ip = Avma(~uint64_t{0})}, sorted, Form::kOriginal).action,
            ClearAction::kLeave);
  EXPECT_EQ(DecideClearing({.ip = Avma(1)}, {}, Form::kOriginal).action, ClearAction::kLeave);
}

}  // namespace
}  // namespace stackreel::patch
