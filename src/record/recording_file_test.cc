#include "record/recording_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "perfdata/reader.h"

namespace stackreel::record {
namespace {

class RecordingFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "stackreel-recording-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string Path() const { return folder_ + "/perf.data"; }

  std::string folder_;
};

perfdata::Event MakeEvent() {
  perfdata::Event event;
  event.name = "cpu-clock";
  event.attr.type = perfdata::kTypeSoftware;
  event.attr.sample_type = perfdata::kSampleIdentifier | perfdata::kSampleTime;
  event.attr.flags = perfdata::kAttrSampleIdAll;
  event.ids = {5};
  return event;
}

perfdata::Record MakeComm(uint32_t pid) {
  perfdata::Record record;
  record.type = static_cast<uint32_t>(perfdata::RecordType::kComm);
  record.body = perfdata::Comm{.pid = pid, .tid = pid, .comm = "x"};
  record.sample_id = perfdata::SampleId();
  return record;
}

struct CountingSink : perfdata::RecordSink {
  Status OnRecord(const perfdata::RawRecord& raw) override {
    if (raw.record_type() == perfdata::RecordType::kComm) ++comms;
    return {};
  }
  size_t comms = 0;
};

// How many COMM records can be read, and how reading ended.
std::pair<size_t, perfdata::ReadEnd> ReadBack(const std::string& path) {
  auto source = os::OpenSource(path);
  EXPECT_TRUE(source.has_value());
  auto reader = perfdata::Reader::Open(**source);
  EXPECT_TRUE(reader.has_value());
  CountingSink sink;
  auto end = (*reader)->ReadAll(sink);
  EXPECT_TRUE(end.has_value());
  return {sink.comms, *end};
}

TEST_F(RecordingFileTest, OldRecordingsStayUntilTheNewOneIsPublished) {
  std::ofstream(Path()) << "old";
  {
    ASSERT_TRUE(RecordingFile::Create(Path(), 1, {MakeEvent()}, {}).has_value());
  }
  EXPECT_EQ(std::filesystem::file_size(Path()), 3u);
  EXPECT_FALSE(std::filesystem::exists(Path() + ".old"));
  {
    auto file = RecordingFile::Create(Path(), 1, {MakeEvent()}, {});
    ASSERT_TRUE(file.has_value());
    EXPECT_EQ(std::filesystem::file_size(Path()), 3u);
    ASSERT_TRUE((*file)->Publish().has_value());
    EXPECT_EQ(std::filesystem::file_size(Path() + ".old"), 3u);
    EXPECT_TRUE(ReadBack(Path()).second.unfinished);
  }
  const auto entries = std::filesystem::directory_iterator(folder_);
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 2);
}

TEST_F(RecordingFileTest, AnEmptyFileIsWrittenWithTheRightsItHas) {
  std::ofstream(Path()) << "";
  std::filesystem::permissions(
      Path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  auto file = RecordingFile::Create(Path(), 1, {MakeEvent()}, {});
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->Publish().has_value());
  ASSERT_TRUE((*file)->Finish({}).has_value());
  EXPECT_EQ(std::filesystem::status(Path()).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_FALSE(std::filesystem::exists(Path() + ".old"));
}

TEST_F(RecordingFileTest, WhatIsNoRecordingIsNeverMovedAway) {
  std::filesystem::create_directory(Path());
  const Status into_directory = CheckOutputPath(Path(), false);
  ASSERT_FALSE(into_directory.has_value());
  EXPECT_EQ(into_directory.error().kind, ErrorKind::kUsage);
  EXPECT_FALSE(CheckOutputPath("/dev/null", true).has_value());
  EXPECT_TRUE(CheckOutputPath("/dev/null", false).has_value());
  auto file = RecordingFile::Create("/dev/null", 1, {MakeEvent()}, {});
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE((*file)->is_pipe());
  ASSERT_TRUE((*file)->Publish().has_value());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_FALSE(std::filesystem::exists("/dev/null.old"));
}

TEST_F(RecordingFileTest, IsReadableAtEachRoundWithoutBeingFinished) {
  for (const int level : {0, 1}) {
    auto file = RecordingFile::Create(Path(), level, {MakeEvent()}, {});
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Publish().has_value());
    for (uint32_t round = 1; round <= 5; ++round) {
      for (uint32_t i = 0; i < 100; ++i) ASSERT_TRUE((*file)->WriteRecord(MakeComm(i)));
      ASSERT_TRUE((*file)->EndRound().has_value());
      const auto [comms, end] = ReadBack(Path());
      EXPECT_EQ(comms, round * 100u);
      EXPECT_TRUE(end.unfinished);
    }
  }
}

TEST_F(RecordingFileTest, FinishedFilesAreWhole) {
  auto file = RecordingFile::Create(Path(), 1, {MakeEvent()}, {});
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->Publish().has_value());
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE((*file)->WriteRecord(MakeComm(i)));
  ASSERT_TRUE((*file)->Finish(MachineFeatures()).has_value());
  const auto [comms, end] = ReadBack(Path());
  EXPECT_EQ(comms, 1000u);
  EXPECT_TRUE(end.complete);
  EXPECT_FALSE(end.unfinished);
}

// What waits in the writer is not in the file, and is not counted as if it were.
TEST_F(RecordingFileTest, SamplesAreCountedOnceTheyAreInTheFile) {
  for (const int level : {0, 1}) {
    auto file = RecordingFile::Create(Path(), level, {MakeEvent()}, {});
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Publish().has_value());
    perfdata::Sample sample;
    sample.present = perfdata::kSampleIdentifier | perfdata::kSampleTime;
    sample.id = 5;
    const auto bytes = perfdata::EncodeSample(sample, 2, MakeEvent().attr, kNativeEndian);
    ASSERT_TRUE(bytes.has_value());
    for (int i = 0; i < 10; ++i) ASSERT_TRUE((*file)->Write(*bytes).has_value());
    ASSERT_TRUE((*file)->WriteRecord(MakeComm(1)).has_value());
    EXPECT_EQ((*file)->samples_written(), 0u);
    ASSERT_TRUE((*file)->EndRound().has_value());
    EXPECT_EQ((*file)->samples_written(), 10u);
    ASSERT_TRUE((*file)->Write(*bytes).has_value());
    ASSERT_TRUE((*file)->Finish({}).has_value());
    EXPECT_EQ((*file)->samples_written(), 11u);
  }
}

TEST_F(RecordingFileTest, NamesThatWillBeTooLongAreRefusedBeforeAnythingIsRecorded) {
  const std::string longest = folder_ + "/" + std::string(255, 'n');
  EXPECT_TRUE(CheckOutputPath(longest, false).has_value());
  EXPECT_FALSE(CheckOutputPath(longest, true).has_value());
  EXPECT_TRUE(CheckOutputPath(folder_ + "/" + std::string(230, 'n'), true).has_value());
  EXPECT_FALSE(CheckOutputPath(longest + "n", false).has_value());
  std::ofstream(longest) << "old";  // becomes NAME.old
  const Status moved = CheckOutputPath(longest, false);
  ASSERT_FALSE(moved.has_value());
  EXPECT_EQ(moved.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(moved.error().message, ::testing::HasSubstr("251 are the most"));
}

TEST_F(RecordingFileTest, AFullDiskIsAnErrorOnceAndForAll) {
  auto file = RecordingFile::Create("/dev/full", 0, {MakeEvent()}, {});
  EXPECT_FALSE(file.has_value());
  EXPECT_THAT(file.error().message, ::testing::HasSubstr("No space left"));
}

}  // namespace
}  // namespace stackreel::record
