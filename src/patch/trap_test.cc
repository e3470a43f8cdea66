#include "patch/trap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

namespace stackreel::patch {
namespace {

const std::vector<TrapEntry> kEntries = {
    {Avma(0x1000), Avma(0x9000), Avma(0)},
    {Avma(0x1001), Avma(0x9100), Avma(0)},
    {Avma(0x2000), Avma(0x9200), Avma(0x2005)},
};

TEST(TrapTest, EntriesAreFoundByAddress) {
  EXPECT_EQ(FindTrap({}, Avma(0x1000)), nullptr);
  for (const TrapEntry& entry : kEntries) EXPECT_EQ(FindTrap(kEntries, entry.address), &entry);
  for (const uint64_t none : {0x0U, 0xfffU, 0x1002U, 0x1fffU, 0x2001U, 0xffffffffU}) {
    EXPECT_EQ(FindTrap(kEntries, Avma(none)), nullptr) << none;
  }
}

TEST(TrapTest, AnEntryLeadsOnWhateverIsInMemory) {
  for (const uint8_t byte : {uint8_t{0x55}, kTrapByte}) {
    const TrapDecision decision = DecideTrap(kEntries, Avma(0x2001), byte);
    EXPECT_EQ(decision.action, TrapAction::kGoOn);
    EXPECT_EQ(decision.to, Avma(0x9200));
    EXPECT_EQ(decision.return_address, Avma(0x2005));
  }
}

TEST(TrapTest, WithoutEntryWhatStandsThereNowIsRun) {
  const TrapDecision decision = DecideTrap(kEntries, Avma(0x3001), 0x55);
  EXPECT_EQ(decision.action, TrapAction::kRetry);
  EXPECT_EQ(decision.to, Avma(0x3000));
  EXPECT_EQ(DecideTrap(kEntries, Avma(0x3001), kTrapByte).action, TrapAction::kProgram);
}

// As a handler sees it: a table that is replaced while it looks.
struct Tables {
  std::vector<std::vector<TrapEntry>> each;
  size_t loads = 0;
  std::span<const TrapEntry> Load() { return each[std::min(loads++, each.size() - 1)]; }
};
struct Table : std::span<const TrapEntry> {
  friend bool operator==(const Table& a, const Table& b) { return a.data() == b.data(); }
};

TEST(TrapTest, AProgramsOwnTrapIsOneInAnUnchangedTable) {
  Tables tables{{kEntries, kEntries}};
  int bytes = 0;
  const auto load = [&] { return Table{tables.Load()}; };
  const auto byte = [&](Avma at) {
    EXPECT_EQ(at, Avma(0x3000));
    ++bytes;
    return kTrapByte;
  };
  // The second load gives another table, and the third the same one.
  EXPECT_EQ(HandleTrap(load, byte, Avma(0x3001)).action, TrapAction::kProgram);
  EXPECT_EQ(tables.loads, 3U);
  EXPECT_EQ(bytes, 2);
}

TEST(TrapTest, ASitePatchedAnewIsFoundInTheNewTable) {
  Tables tables{{{}, kEntries}};
  const auto decision = HandleTrap([&] { return Table{tables.Load()}; },
                                   [](Avma) { return kTrapByte; }, Avma(0x1001));
  EXPECT_EQ(decision.action, TrapAction::kGoOn);
  EXPECT_EQ(decision.to, Avma(0x9000));
}

}  // namespace
}  // namespace stackreel::patch
