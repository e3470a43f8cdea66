#include "cli/recording_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "perfdata/synthetic_recording.h"

namespace stackreel::cli {
namespace {

using perfdata::synthetic::Bytes;
using perfdata::synthetic::FileBytes;
using perfdata::synthetic::KeepingSink;
using perfdata::synthetic::SampleBytes;
using testing::ElementsAre;

class RecordingInputTest : public testing::Test {
 protected:
  RecordingInputTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("recording_input_" +
                 std::string(testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~RecordingInputTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const Bytes& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << AsText(bytes);
  }
  static std::vector<uint64_t> Times(const RecordingInput& input) {
    KeepingSink sink;
    EXPECT_TRUE(input.reader->ReadAll(sink));
    std::vector<uint64_t> times;
    times.reserve(sink.records.size());
    for (const perfdata::RawRecord& raw : sink.records) {
      times.push_back(input.reader->events().TimeOf(raw, Endian::kLittle).value_or(0));
    }
    return times;
  }

  std::filesystem::path folder_;
};

TEST_F(RecordingInputTest, OpensAFile) {
  Write("perf.data", FileBytes(SampleBytes(100, 7)));
  const Result<RecordingInput> input = OpenRecording(folder_ / "perf.data");
  ASSERT_TRUE(input);
  EXPECT_THAT(Times(*input), ElementsAre(7));
}

TEST_F(RecordingInputTest, OpensADirectory) {
  Write("data", FileBytes(SampleBytes(100, 7)));
  Write("data.0", SampleBytes(100, 9));
  Write("data.1", SampleBytes(100, 8));
  const Result<RecordingInput> input = OpenRecording(folder_);
  ASSERT_TRUE(input);
  EXPECT_THAT(Times(*input), ElementsAre(7, 8, 9));
}

TEST_F(RecordingInputTest, SaysWhatIsMissing) {
  const Result<RecordingInput> input = OpenRecording(folder_ / "none.data");
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(input.error().cure, testing::HasSubstr("stackreel record"));
}

}  // namespace
}  // namespace stackreel::cli
