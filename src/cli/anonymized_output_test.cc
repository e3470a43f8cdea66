#include "cli/anonymized_output.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>

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

TEST(VerdictText, SaysWhatWhereAndHowMuchMore) {
  anonymize::Verdict verdict;
  verdict.samples = 3;
  verdict.mappings = 2;
  verdict.bytes = 1000;
  EXPECT_EQ(VerdictText(verdict, "out.data"),
            "out.data: clean: 3 samples, 2 mappings, 1000 bytes looked at\n");
  verdict.findings.push_back(
      {anonymize::FindingKind::kPayload, "SAMPLE", "raw", 0x1a8, 0x20, "12 bytes of payload"});
  verdict.found = 5;
  EXPECT_EQ(VerdictText(verdict, "out.data"),
            "(c) payload: SAMPLE raw at 0x1a8+0x20: 12 bytes of payload\n"
            "and 4 more\n"
            "out.data: not clean: 5 found\n");
}

}  // namespace
}  // namespace stackreel::cli
