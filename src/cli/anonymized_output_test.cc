#include "cli/anonymized_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

namespace stackreel::cli {
namespace {

class AnonymizedOutputTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("anonymized_output." + std::to_string(getpid()));
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ / name; }

 private:
  std::filesystem::path folder_;
};

std::string Content(FileSource& source) {
  std::string text(*source.size(), 0);
  std::span<uint8_t> out(reinterpret_cast<uint8_t*>(text.data()), text.size());
  EXPECT_EQ(*source.ReadAt(0, out), text.size());
  return text;
}

TEST_F(AnonymizedOutputTest, IsNoFileBeforeItIsPutInPlace) {
  {
    auto output = AnonymizedOutput::Create(Path("out"), /*kept=*/true);
    ASSERT_TRUE(output);
    ASSERT_TRUE((*output)->Write(AsBytes("what was written")));
    ASSERT_TRUE((*output)->WriteAt(0, AsBytes("WHAT")));
    EXPECT_EQ(Content(*(*output)->Source()), "WHAT was written");
    EXPECT_FALSE(std::filesystem::exists(Path("out")));
  }
  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(Path("out")).parent_path()));
  auto output = AnonymizedOutput::Create(Path("out"), /*kept=*/true);
  ASSERT_TRUE(output);
  ASSERT_TRUE((*output)->Write(AsBytes("what was written")));
  ASSERT_TRUE((*output)->Commit());
  EXPECT_EQ(*os::ReadTextFile(Path("out")), "what was written");
}

TEST_F(AnonymizedOutputTest, IntoADeviceNothingGoesBeforeItIsPutInPlace) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const os::Fd read_end(ends[0]);
  {
    const os::Fd write_end(ends[1]);
    const std::string path = "/proc/self/fd/" + std::to_string(write_end.get());
    {
      auto left = AnonymizedOutput::Create(path, /*kept=*/true);
      ASSERT_TRUE(left);
      ASSERT_TRUE((*left)->Write(AsBytes("a secret")));
    }
    auto output = AnonymizedOutput::Create(path, /*kept=*/true);
    ASSERT_TRUE(output);
    ASSERT_TRUE((*output)->Write(AsBytes("all is clean")));
    EXPECT_EQ(Content(*(*output)->Source()), "all is clean");
    ASSERT_TRUE((*output)->Commit());
  }
  std::array<char, 64> got;
  const ssize_t n = read(read_end.get(), got.data(), got.size());
  ASSERT_GT(n, 0);
  EXPECT_EQ(std::string(got.data(), static_cast<size_t>(n)), "all is clean");
}

TEST(VerdictText, SaysWhatWhereAndHowOften) {
  using anonymize::FindingKind;
  using anonymize::Level;
  anonymize::Verdict verdict;
  verdict.samples = 3;
  verdict.mappings = 2;
  verdict.bytes = 1000;
  EXPECT_EQ(VerdictText(verdict, "out.data", Level::kAddresses),
            "out.data: clean at --addresses: 3 samples, 2 mappings, 1000 bytes looked at\n");
  verdict.groups.push_back(
      {{FindingKind::kPayload, "SAMPLE", "raw", 0x1a8, 0x20, "12 bytes of payload"}, 4});
  verdict.groups.push_back({{FindingKind::kText, "", "", 8, 0, "\"x\""}, 1});
  verdict.found = 5;
  const std::string two =
      "(c) payload: SAMPLE raw at 0x1a8+0x20: 12 bytes of payload; 4 such\n"
      "(e) hidden text: between records at 0x8+0x0: \"x\"\n";
  EXPECT_EQ(VerdictText(verdict, "out.data", Level::kAddresses),
            two + "out.data: not clean at --addresses: 5 found\n");
  anonymize::FindingGroup group = {.first = {}, .count = 3};
  group.first.kind = FindingKind::kText;
  group.first.record = "X";
  group.first.field = "f";
  for (int i = 0; i < 20; ++i) verdict.groups.push_back(group);
  verdict.found = 65;
  const std::string text = VerdictText(verdict, "out.data", Level::kAddresses);
  EXPECT_TRUE(text.starts_with(two));
  EXPECT_TRUE(
      text.ends_with("and 6 more in 2 other fields\n"
                     "out.data: not clean at --addresses: 65 found\n"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 22);
}

TEST(VerdictText, SaysWhenTheLevelIsNotTheOneAskedFor) {
  using anonymize::Level;
  const auto first_line = [](std::optional<Level> asked, std::optional<Level> mark) {
    anonymize::Verdict verdict;
    verdict.mark = mark;
    verdict.level = std::max(asked.value_or(Level()), mark.value_or(Level()));
    const std::string text = VerdictText(verdict, "out", asked);
    return text.substr(0, text.find('\n'));
  };
  EXPECT_EQ(first_line({}, {}), "out: anonymize left no mark in it: checked for --addresses");
  EXPECT_EQ(first_line(Level::kAddresses, Level::kSymbols),
            "out: made with --symbols: checked for that, which is more than --addresses");
  EXPECT_EQ(first_line(Level::kSymbols, Level::kIdentity),
            "out: made with --identity: checked for --symbols nevertheless");
  EXPECT_TRUE(first_line(Level::kSymbols, {}).starts_with("out: clean at --symbols"));
  EXPECT_TRUE(first_line({}, Level::kIdentity).starts_with("out: clean at --identity"));
}

}  // namespace
}  // namespace stackreel::cli
