#include "views/chain_text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace stackreel::views {
namespace {

using Line = std::pair<ChainFrameKey, std::string>;

// Tells a chain, outermost frame first, as ScriptText does; returns how many frames were kept.
size_t Tell(ChainText& text, uint32_t fields, const std::vector<Line>& lines) {
  text.Begin(fields);
  size_t i = 0;
  while (i < lines.size() && text.Keep(lines[i].first)) ++i;
  text.Cut();
  const size_t kept = i;
  for (; i < lines.size(); ++i) text.Add(lines[i].first, lines[i].second);
  return kept;
}

class ChainTextTest : public testing::Test {
 protected:
  Line At(uint64_t address, std::string text) const {
    return {ChainFrameKey{.symbols = &symbols_[0], .shown = address, .svma = address, .module = 1},
            std::move(text)};
  }
  std::array<symbolize::SymbolizedFrame, 2> symbols_;
  ChainText text_;
};

TEST_F(ChainTextTest, InnermostLinesComeFirst) {
  EXPECT_EQ(Tell(text_, 1, {At(1, "main\n"), At(2, "f\n")}), 0U);
  EXPECT_EQ(text_.text(), "f\nmain\n");
}

TEST_F(ChainTextTest, KeepsWhatIsCommonOutside) {
  Tell(text_, 1, {At(1, "main\n"), At(2, "f\n"), At(3, "g\n")});
  EXPECT_EQ(Tell(text_, 1, {At(1, "-"), At(2, "-"), At(4, "h, which is longer\n")}), 2U);
  EXPECT_EQ(text_.text(), "h, which is longer\nf\nmain\n");
  // Equal frames inside a frame that differs are none of the chain before.
  EXPECT_EQ(Tell(text_, 1, {At(1, "-"), At(5, "k\n"), At(4, "h\n")}), 1U);
  EXPECT_EQ(text_.text(), "h\nk\nmain\n");
  EXPECT_EQ(Tell(text_, 1, {At(1, "-")}), 1U);
  EXPECT_EQ(text_.text(), "main\n");
  EXPECT_EQ(Tell(text_, 1, {}), 0U);
  EXPECT_EQ(text_.text(), "");
}

TEST_F(ChainTextTest, AllThatAFrameIsPrintedByCounts) {
  Tell(text_, 1, {At(1, "main\n")});
  EXPECT_EQ(Tell(text_, 2, {At(1, "main (dso)\n")}), 0U) << "other fields";
  Line other = At(1, "other symbol\n");
  other.first.symbols = &symbols_[1];
  EXPECT_EQ(Tell(text_, 2, {other}), 0U);
  other.first.module = 2;
  EXPECT_EQ(Tell(text_, 2, {other}), 0U);
  other.first.svma = 7;
  EXPECT_EQ(Tell(text_, 2, {other}), 0U);
  EXPECT_EQ(Tell(text_, 2, {other}), 1U);
}

TEST_F(ChainTextTest, GrowsWithWhatItHolds) {
  std::vector<Line> lines;
  std::string expected;
  for (uint64_t i = 0; i < 1000; ++i) {
    lines.push_back(At(i, std::string(i % 50, 'x') + "\n"));
    expected.insert(0, lines.back().second);
  }
  Tell(text_, 1, lines);
  EXPECT_EQ(text_.text(), expected);
  lines.back() = At(5000, "new\n");
  EXPECT_EQ(Tell(text_, 1, lines), 999U);
  EXPECT_EQ(text_.text(), "new\n" + expected.substr(expected.find('\n') + 1));
}

}  // namespace
}  // namespace stackreel::views
