#include "profile/call_tree.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "profile/folded_profile.h"

namespace stackreel::profile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "PATH total/self", a node a line, depth first.
std::vector<std::string> Lines(const Profile& profile, const CallTree& tree) {
  std::vector<std::string> paths(tree.nodes.size());
  std::vector<std::string> lines;
  const std::function<void(uint32_t)> visit = [&](uint32_t at) {
    const TreeNode& node = tree.nodes[at];
    if (at != 0) {
      const std::string name = node.frame == kNoFrame
                                   ? std::string(profile.Text(node.comm))
                                   : FrameName(profile, profile.frames()[node.frame]);
      paths[at] = paths[node.parent] + "/" + name;
      std::string line = fmt::format("{} {}/{}", paths[at], node.total.weight, node.self.weight);
      if (node.left_out.weight > 0) line += fmt::format(" left out {}", node.left_out.weight);
      lines.push_back(line);
    }
    for (uint32_t i = 0; i < node.child_count; ++i) visit(node.first_child + i);
  };
  visit(0);
  return lines;
}

std::vector<std::string> RowTree(const Profile& profile, const char* symbol, RowGraph graph,
                                 const TreeOptions& options = {}) {
  const FlatTable table = MakeFlatTable(profile, {}, {SortKey::kSym}, true);
  for (uint32_t i = 0; i < table.rows.size(); ++i) {
    if (RowText(profile, table, table.rows[i], SortKey::kSym) != std::string("[.] ") + symbol) {
      continue;
    }
    const uint32_t rows[] = {i};
    return Lines(profile, MakeRowTrees(profile, {}, table, rows, graph, options)[0]);
  }
  return {"no such row"};
}

TEST(CallTree, CalleesFromTheRoot) {
  Profile profile;
  AddFolded(profile, "a;main;f;g 5\na;main;f 2\nb;main;g 4\n");
  const CallTree tree = MakeCallTree(profile, {}, {});
  EXPECT_EQ(tree.nodes[0].total.weight, 11u);
  EXPECT_EQ(tree.nodes[0].total.samples, 3u);
  EXPECT_THAT(Lines(profile, tree),
              ElementsAre("/main 11/0", "/main/f 7/2", "/main/f/g 5/5", "/main/g 4/4"));
}

TEST(CallTree, ByComm) {
  Profile profile;
  AddFolded(profile, "a;main;f 5\nb;main 9\na;main 1\n");
  TreeOptions options;
  options.by_comm = true;
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, options)),
              ElementsAre("/b 9/0", "/b/main 9/9", "/a 6/0", "/a/main 6/1", "/a/main/f 5/5"));
}

TEST(CallTree, CallersFromTheLeaf) {
  Profile profile;
  AddFolded(profile, "a;main;f;g 5\na;main;g 2\na;main 1\n");
  TreeOptions options;
  options.direction = TreeDirection::kCallers;
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, options)),
              ElementsAre("/g 7/0", "/g/f 5/0", "/g/f/main 5/5", "/g/main 2/2", "/main 1/1"));
}

TEST(CallTree, LightNodesAreLeftOutAndTold) {
  Profile profile;
  AddFolded(profile, "a;main;f;g 90\na;main;h 6\na;main;i 4\n");
  TreeOptions options;
  options.min_weight = 10;
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, options)),
              ElementsAre("/main 100/0 left out 10", "/main/f 90/0", "/main/f/g 90/90"));
}

TEST(CallTree, DepthLimitLeavesOutWhatIsBelow) {
  Profile profile;
  AddFolded(profile, "a;main;f;g;h 9\na;main;f 1\n");
  TreeOptions options;
  options.max_depth = 2;
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, options)),
              ElementsAre("/main 10/0", "/main/f 10/1 left out 9"));
}

TEST(CallTree, LinesOfOneFunctionAreOneNode) {
  Profile profile;
  Frame frame;
  frame.function = profile.Intern("f");
  ProfileSample sample;
  sample.weight = 1;
  for (uint32_t line : {1, 2}) {
    frame.line = line;
    sample.stack = profile.Push(kEmptyStack, profile.AddFrame(frame));
    profile.AddSample(sample);
  }
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, {})), ElementsAre("/f 2/2"));
}

TEST(CallTree, UnresolvedFramesMergeWhenAsked) {
  Profile profile;
  AddFolded(profile, "a;lib!0x10 1\na;lib!0x20 2\n");
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, {})), ElementsAre("/0x20 2/2", "/0x10 1/1"));
  TreeOptions options;
  options.merge_unresolved = true;
  EXPECT_THAT(Lines(profile, MakeCallTree(profile, {}, options)), ElementsAre("/0x10 3/3"));
}

TEST(CallTree, OfNothingIsARoot) { EXPECT_THAT(Lines({}, MakeCallTree({}, {}, {})), IsEmpty()); }

constexpr const char* kRecursive =
    "a;main;f;g;f;h 5\n"
    "a;main;f;h 3\n"
    "a;main;g 2\n";

TEST(RowTree, CalleesFromTheOutermostFrame) {
  Profile profile;
  AddFolded(profile, kRecursive);
  EXPECT_THAT(RowTree(profile, "f", RowGraph::kCallees),
              ElementsAre("/f 8/0", "/f/g 5/0", "/f/g/f 5/0", "/f/g/f/h 5/5", "/f/h 3/3"));
}

TEST(RowTree, CallersFromTheInnermostFrame) {
  Profile profile;
  AddFolded(profile, kRecursive);
  EXPECT_THAT(RowTree(profile, "f", RowGraph::kCallers),
              ElementsAre("/f 8/0", "/f/g 5/0", "/f/g/f 5/0", "/f/g/f/main 5/5", "/f/main 3/3"));
}

TEST(RowTree, CallersOfOwnSamples) {
  Profile profile;
  AddFolded(profile, kRecursive);
  EXPECT_THAT(RowTree(profile, "h", RowGraph::kSelfCallers),
              ElementsAre("/h 8/0", "/h/f 8/0", "/h/f/g 5/0", "/h/f/g/f 5/0", "/h/f/g/f/main 5/5",
                          "/h/f/main 3/3"));
  EXPECT_THAT(RowTree(profile, "f", RowGraph::kSelfCallers), IsEmpty());
}

TEST(RowTree, PathsToOwnSamples) {
  Profile profile;
  AddFolded(profile, kRecursive);
  EXPECT_THAT(RowTree(profile, "g", RowGraph::kSelfPaths), ElementsAre("/main 2/0", "/main/g 2/2"));
}

TEST(RowTree, OwnSamplesBeginWithWhatIsInlinedIntoIt) {
  Profile profile;
  AddFolded(profile, "a;main;work;deep~ 5\n");
  EXPECT_THAT(RowTree(profile, "work", RowGraph::kSelfCallers),
              ElementsAre("/deep (inlined) 5/0", "/deep (inlined)/work 5/0",
                          "/deep (inlined)/work/main 5/5"));
}

TEST(RowTree, IsOfTheRowsSampleGroupOnly) {
  Profile profile;
  AddFolded(profile, "a;main;f 5\nb;main;f 7\n");
  const FlatTable table =
      MakeFlatTable(profile, {}, {SortKey::kComm, SortKey::kSym}, /*children=*/false);
  const uint32_t rows[] = {0, 1};
  const auto trees = MakeRowTrees(profile, {}, table, rows, RowGraph::kSelfCallers, {});
  EXPECT_THAT(Lines(profile, trees[0]), ElementsAre("/f 7/0", "/f/main 7/7"));
  EXPECT_THAT(Lines(profile, trees[1]), ElementsAre("/f 5/0", "/f/main 5/5"));
}

// Each recursion depth is a stack of its own, so looking at every pair would take minutes.
TEST(RowTree, DeepRecursionEnds) {
  Profile profile;
  Frame frame;
  frame.function = profile.Intern("f");
  const FrameId f = profile.AddFrame(frame);
  ProfileSample sample;
  sample.weight = 1;
  for (int depth = 0; depth < 20'000; ++depth) {
    sample.stack = profile.Push(sample.stack, f);
    profile.AddSample(sample);
  }
  TreeOptions options;
  options.min_weight = 100;
  options.max_depth = 256;
  EXPECT_EQ(RowTree(profile, "f", RowGraph::kSelfCallers, options).size(), 256u);
  EXPECT_EQ(RowTree(profile, "f", RowGraph::kCallees, options).size(), 256u);
}

}  // namespace
}  // namespace stackreel::profile
