#include "profile/flat_table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profile/folded_profile.h"

namespace stackreel::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

std::vector<std::string> Rows(const Profile& profile, const FlatTable& table) {
  std::vector<std::string> rows;
  for (const FlatRow& row : table.rows) {
    std::string text = fmt::format("{} {}", row.children.weight, row.self.weight);
    for (SortKey key : table.keys) text += " " + RowText(profile, table, row, key);
    rows.push_back(text);
  }
  return rows;
}

std::vector<std::string> Rows(const Profile& profile, const char* keys, bool children = true) {
  return Rows(profile, MakeFlatTable(profile, {}, ParseSortKeys(keys).value(), children));
}

TEST(FlatTable, ChildrenAreInclusiveAndSelfIsNot) {
  Profile profile;
  AddFolded(profile, "a;main;work;leaf 6\na;main;work 3\na;main 1\n");
  EXPECT_THAT(Rows(profile, "sym"), ElementsAre("10 1 [.] main", "9 3 [.] work", "6 6 [.] leaf"));
  EXPECT_THAT(Rows(profile, "sym", false),
              ElementsAre("6 6 [.] leaf", "9 3 [.] work", "10 1 [.] main"));
}

TEST(FlatTable, RecursionCountsOnce) {
  Profile profile;
  AddFolded(profile, "a;main;f;g;f;g;f 5\na;main;f 2\n");
  EXPECT_THAT(Rows(profile, "sym"), ElementsAre("7 7 [.] f", "7 0 [.] main", "5 0 [.] g"));
}

TEST(FlatTable, RecursionThroughAnotherModuleIsTwoRowsOnlyIfTheModuleIsAKey) {
  Profile profile;
  AddFolded(profile, "a;x!f;y!f 5\n");
  EXPECT_THAT(Rows(profile, "sym"), ElementsAre("5 5 [.] f"));
  EXPECT_THAT(Rows(profile, "dso,sym"), ElementsAre("5 5 y [.] f", "5 0 x [.] f"));
}

TEST(FlatTable, SampleKeysSplitRows) {
  Profile profile;
  AddFolded(profile, "a;main;f 5\nb;main;f 7\n");
  EXPECT_THAT(Rows(profile, "comm,sym"),
              ElementsAre("7 7 b [.] f", "7 0 b [.] main", "5 5 a [.] f", "5 0 a [.] main"));
  EXPECT_THAT(Rows(profile, "comm"), ElementsAre("7 7 b", "5 5 a"));
  EXPECT_THAT(Rows(profile, "pid,tid,cpu"), ElementsAre("12 12 100 100 0"));
}

TEST(FlatTable, InlinedFunctionsCountForTheFunctionTheyAreIn) {
  Profile profile;
  AddFolded(profile, "a;main;work;deep~;deeper~ 5\n");
  EXPECT_THAT(Rows(profile, "sym"),
              UnorderedElementsAre("5 5 [.] work", "5 0 [.] deep (inlined)",
                                   "5 0 [.] deeper (inlined)", "5 0 [.] main"));
  EXPECT_THAT(Rows(profile, "sym", false), ElementsAre("5 5 [.] work"));
}

TEST(FlatTable, UnresolvedFramesAreTheirAddresses) {
  Profile profile;
  AddFolded(profile, "a;lib!0x10 1\na;lib!0x20 2\na;[kernel.kallsyms]!read 3\n");
  EXPECT_THAT(Rows(profile, "sym"), ElementsAre("3 3 [k] read", "2 2 [.] 0x20", "1 1 [.] 0x10"));
  EXPECT_THAT(Rows(profile, "dso"), ElementsAre("3 3 [kernel.kallsyms]", "3 3 lib"));
}

TEST(FlatTable, MarkersHaveNoRowUnlessAlone) {
  Profile profile;
  AddFolded(profile, "a;[truncated];main 4\na;[nothing] 1\n");
  EXPECT_THAT(Rows(profile, "sym"), ElementsAre("4 4 [.] main", "1 1 [.] [nothing]"));
}

TEST(FlatTable, SamplesWithoutFramesAreARow) {
  Profile profile;
  AddFolded(profile, "a 4\na;main 1\n");
  EXPECT_THAT(Rows(profile, "dso,sym"),
              ElementsAre("4 4 [unknown] [no stack]", "1 1 app [.] main"));
}

TEST(FlatTable, TotalIsOfTheSelectedSamples) {
  Profile profile;
  AddFolded(profile, "a;main;f 5\nb;main;f 7\n");
  Filter filter;
  filter.comms = {"b"};
  const FlatTable table = MakeFlatTable(profile, filter, {SortKey::kSym}, true);
  EXPECT_EQ(table.total.weight, 7u);
  EXPECT_EQ(table.total.samples, 1u);
}

TEST(FlatTable, DeepRecursionIsLinear) {
  Profile profile;
  Frame frame;
  frame.function = profile.Intern("f");
  const FrameId f = profile.AddFrame(frame);
  ProfileSample sample;
  sample.weight = 1;
  for (int depth = 0; depth < 300'000; ++depth) {
    sample.stack = profile.Push(sample.stack, f);
    profile.AddSample(sample);
  }
  EXPECT_THAT(Rows(profile, "sym"), ElementsAre("300000 300000 [.] f"));
}

TEST(SortKeys, NamesAndMistakes) {
  EXPECT_THAT(ParseSortKeys("comm,symbol,comm").value(),
              ElementsAre(SortKey::kComm, SortKey::kSym));
  const auto bad = ParseSortKeys("comm,,sym");
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace stackreel::profile
