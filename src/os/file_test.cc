#include "os/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>
#include <thread>

namespace stackreel::os {
namespace {

using ::testing::HasSubstr;

// A folder of its own for each test.
class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "stackreel-file-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] size_t CountFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  static void WriteFile(const std::string& path, std::string_view text) {
    auto file = OutputFile::CreateInPlace(path);
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Write(AsBytes(text)).has_value());
  }

  std::string folder_;
};

TEST_F(FileTest, FdIsClosedOnceWithItsOwner) {
  int raw = -1;
  {
    Fd a(open("/dev/null", O_RDONLY | O_CLOEXEC));
    raw = a.get();
    Fd b = std::move(a);
    EXPECT_FALSE(a.valid());  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(b.get(), raw);
    EXPECT_NE(fcntl(raw, F_GETFD), -1);
  }
  EXPECT_EQ(fcntl(raw, F_GETFD), -1);
}

TEST_F(FileTest, ErrorsNameFileAndReason) {
  const auto missing = MapFile(Path("none"));
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr(Path("none") + ": No such file"));
  EXPECT_EQ(OpenSource(folder_).error().kind, ErrorKind::kIo);
  EXPECT_EQ(MapFile(folder_).error().kind, ErrorKind::kIo);
}

TEST_F(FileTest, MappingAFifoDoesNotWait) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(MapFile(Path("fifo")).has_value());
}

TEST_F(FileTest, MapsBytesAndTheEmptyFile) {
  WriteFile(Path("a"), "hello");
  auto image = MapFile(Path("a"));
  ASSERT_TRUE(image.has_value());
  EXPECT_EQ(AsText((*image)->bytes()), "hello");
  WriteFile(Path("empty"), "");
  auto empty = MapFile(Path("empty"));
  ASSERT_TRUE(empty.has_value());
  EXPECT_TRUE((*empty)->bytes().empty());
}

TEST_F(FileTest, PagesCutOffAMappedFileReadAsZeros) {
  WriteFile(Path("a"), std::string(3 * 4096, 'x'));
  auto image = MapFile(Path("a"));
  ASSERT_TRUE(image.has_value());
  ASSERT_EQ(truncate(Path("a").c_str(), 4096), 0);
  const ByteView bytes = (*image)->bytes();
  EXPECT_EQ(std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}), 4096u * 'x');
}

TEST_F(FileTest, SourceReadsOnAndAnywhere) {
  WriteFile(Path("a"), "0123456789");
  auto source = OpenSource(Path("a"));
  ASSERT_TRUE(source.has_value());
  EXPECT_EQ((*source)->size(), 10u);
  std::array<uint8_t, 4> four = {};
  EXPECT_EQ((*source)->Read(four), 4u);
  std::array<uint8_t, 8> eight = {};
  EXPECT_EQ((*source)->ReadAt(7, eight), 3u);
  EXPECT_EQ(AsText(ByteView(eight).first(3)), "789");
  EXPECT_EQ((*source)->ReadAt(11, eight), 0u);
  EXPECT_EQ((*source)->Read(four), 4u);
  EXPECT_EQ(AsText(four), "4567");
}

TEST_F(FileTest, SourceMapsAnyPieceThatIsThere) {
  std::string text(3 * 4096 + 100, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  WriteFile(Path("a"), text);
  auto source = OpenSource(Path("a"));
  ASSERT_TRUE(source.has_value());
  for (const size_t offset : {size_t{0}, size_t{1}, size_t{4095}, size_t{4096}, size_t{9000}}) {
    for (const size_t size : {size_t{1}, size_t{200}, size_t{3000}, text.size() - offset}) {
      const FileImagePtr image = (*source)->MapAt(offset, size);
      ASSERT_NE(image, nullptr) << offset << " " << size;
      EXPECT_EQ(AsText(image->bytes()), std::string_view(text).substr(offset, size));
    }
  }
  EXPECT_EQ((*source)->MapAt(0, text.size() + 1), nullptr);
  EXPECT_EQ((*source)->MapAt(text.size(), 1), nullptr);
  EXPECT_EQ((*source)->MapAt(UINT64_MAX, 2), nullptr);
  EXPECT_EQ((*source)->MapAt(5, 0), nullptr);
  const FileImagePtr image = (*source)->MapAt(4097, 2);
  source->reset();
  EXPECT_EQ(AsText(image->bytes()), text.substr(4097, 2));
}

// What was cut off is found to be missing when it is to be mapped, and not by a signal later.
TEST_F(FileTest, SourceDoesNotMapWhatWasCutOff) {
  WriteFile(Path("a"), std::string(4 * 4096, 'x'));
  auto source = OpenSource(Path("a"));
  ASSERT_TRUE(source.has_value());
  ASSERT_EQ(truncate(Path("a").c_str(), 4096), 0);
  EXPECT_NE((*source)->MapAt(0, 4096), nullptr);
  EXPECT_EQ((*source)->MapAt(0, 4097), nullptr);
}

TEST_F(FileTest, ReadsFilesOfUnknownSizeToTheirEndAndHoldsTheLimit) {
  auto maps = ReadTextFile("/proc/self/maps");
  ASSERT_TRUE(maps.has_value());
  EXPECT_TRUE(maps->ends_with('\n'));
  WriteFile(Path("a"), std::string(100'000, 'y'));
  EXPECT_EQ(ReadTextFile(Path("a"))->size(), 100'000u);
  EXPECT_FALSE(ReadTextFile(Path("a"), 50'000).has_value());
}

// As tracefs's header_page: what the first read leaves is gone.
TEST_F(FileTest, ReadsFilesThatGiveAllAtOnceOrNever) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe2(ends, O_DIRECT | O_CLOEXEC), 0);  // packets
  const Fd reader(ends[0]);
  const std::string text(1000, 'x');
  {
    const Fd writer(ends[1]);
    ASSERT_EQ(write(writer.get(), text.data(), text.size()), 1000);
  }
  EXPECT_EQ(ReadTextFile("/proc/self/fd/" + std::to_string(reader.get())).value_or(""), text);
}

TEST_F(FileTest, AnOutputThatCannotBeMadeSaysWhy) {
  EXPECT_THAT(OutputFile::Create(Path(std::string(300, 'n'))).error().message,
              ::testing::HasSubstr("File name too long"));
  EXPECT_THAT(OutputFile::Create(Path("no/folder")).error().message,
              ::testing::HasSubstr("No such file or directory"));
}

// In a child, whose standard descriptors may be closed.
[[noreturn]] void OpenWithClosedOutput(const std::string& path) {
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
  HoldStandardDescriptors();
  const Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  const bool is_apart = file.get() > STDERR_FILENO;
  const bool fails = write(STDOUT_FILENO, "x", 1) == -1 && errno == EBADF;
  char byte = 0;
  const bool reads_fail = read(STDIN_FILENO, &byte, 1) == -1 && errno == EBADF;
  const bool is_not_inherited = (fcntl(STDOUT_FILENO, F_GETFD) & FD_CLOEXEC) != 0;
  _exit(is_apart && fails && reads_fail && is_not_inherited ? 0 : 1);
}
TEST_F(FileTest, ClosedStandardDescriptorsAreNotTaken) {
  EXPECT_EXIT(OpenWithClosedOutput(Path("a")), ::testing::ExitedWithCode(0), "");
}

TEST_F(FileTest, OutputAppearsOnlyWhenCommitted) {
  WriteFile(Path("out"), "old");
  {
    auto file = OutputFile::Create(Path("out"));
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Write(AsBytes("new text")).has_value());
    EXPECT_EQ(*ReadTextFile(Path("out")), "old");
    ASSERT_TRUE((*file)->WriteAt(0, AsBytes("N")).has_value());
    ASSERT_TRUE((*file)->Commit().has_value());
    EXPECT_EQ(*ReadTextFile(Path("out")), "New text");
  }
  {
    auto file = OutputFile::Create(Path("out"));
    ASSERT_TRUE((*file)->Write(AsBytes("never")).has_value());
  }
  EXPECT_EQ(*ReadTextFile(Path("out")), "New text");
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(FileTest, OutputThroughALinkKeepsTheLink) {
  WriteFile(Path("real"), "old");
  ASSERT_EQ(symlink("real", Path("link").c_str()), 0);
  auto file = OutputFile::Create(Path("link"));
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->Write(AsBytes("new")).has_value());
  ASSERT_TRUE((*file)->Commit().has_value());
  EXPECT_EQ(*ReadTextFile(Path("real")), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
}

TEST_F(FileTest, OutputThroughALinkToNothingMakesWhatItLeadsTo) {
  std::filesystem::create_directory(Path("folder"));
  ASSERT_EQ(symlink("folder/second", Path("first").c_str()), 0);
  ASSERT_EQ(symlink("third", Path("folder/second").c_str()), 0);
  EXPECT_EQ(FollowLinks(Path("first")), Path("folder/third"));
  auto file = OutputFile::Create(Path("first"));
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->Commit().has_value());
  EXPECT_TRUE(std::filesystem::is_symlink(Path("first")));
  EXPECT_TRUE(std::filesystem::is_regular_file(Path("folder/third")));
  ASSERT_EQ(symlink("loop", Path("loop").c_str()), 0);
  EXPECT_EQ(FollowLinks(Path("loop")), Path("loop"));
}

TEST_F(FileTest, WhatIsCreatedBesideIsThereWhenCommittedAndIsWrittenOn) {
  WriteFile(Path("out"), "old");
  {
    auto file = OutputFile::CreateBeside(Path("out"));
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Write(AsBytes("begin")).has_value());
    EXPECT_EQ(*ReadTextFile(Path("out")), "old");
    ASSERT_TRUE((*file)->Commit().has_value());
    EXPECT_EQ(*ReadTextFile(Path("out")), "begin");
    ASSERT_TRUE((*file)->Write(AsBytes(" end")).has_value());
    EXPECT_EQ(*ReadTextFile(Path("out")), "begin end");
  }
  EXPECT_EQ(CountFiles(), 1u);
  {
    auto file = OutputFile::CreateBeside(Path("out"));
  }
  EXPECT_EQ(*ReadTextFile(Path("out")), "begin end");
  EXPECT_EQ(CountFiles(), 1u);
}

TEST_F(FileTest, LimitsAreNamed) {
  EXPECT_EQ(ErrnoError(EMFILE, "cannot open", "a").message,
            "cannot open a: Too many open files (the limit of ulimit -n)");
  EXPECT_EQ(ErrnoError(EIO, "cannot open", "a").message, "cannot open a: Input/output error");
}

TEST_F(FileTest, RecordingsAreForTheirOwnerAlone) {
  constexpr mode_t kUsualMask = 022;
  const mode_t old_mask = umask(kUsualMask);
  const auto rights = [this](const char* name) {
    return std::filesystem::status(Path(name)).permissions();
  };
  ASSERT_TRUE((*OutputFile::CreateBeside(Path("recording")))->Commit().has_value());
  ASSERT_TRUE((*OutputFile::Create(Path("report")))->Commit().has_value());
  umask(old_mask);
  EXPECT_EQ(rights("recording"), std::filesystem::perms(0600));
  EXPECT_EQ(rights("report"), std::filesystem::perms(0644));
}

TEST_F(FileTest, NamesMayBeAsLongAsTheKernelTakes) {
  for (const size_t length : {1, 230, 240, 254, 255}) {
    const std::string path = Path(std::string(length, 'n'));
    auto file = OutputFile::Create(path);
    ASSERT_TRUE(file.has_value()) << length << ": " << file.error().message;
    ASSERT_TRUE((*file)->Write(AsBytes("text")).has_value());
    ASSERT_TRUE((*file)->Commit().has_value());
    EXPECT_EQ(ReadTextFile(path).value_or(""), "text");
  }
  EXPECT_EQ(CountFiles(), 5u);
  EXPECT_FALSE(OutputFile::Create(Path(std::string(256, 'n'))).has_value());
}

// In a process of its own, which the limit stays in.
TEST_F(FileTest, ASizeLimitIsAnErrorOfWriting) {
  const auto write_too_much = [this] {
    TakeSizeLimitAsError();
    const struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    auto file = OutputFile::Create(Path("out"));
    const Status status = (*file)->Write(std::vector<uint8_t>(size_t{1} << 20));
    if (!status) fprintf(stderr, "%s", status.error().message.c_str());
    _exit(status ? 1 : 3);
  };
  EXPECT_EXIT(write_too_much(), testing::ExitedWithCode(3), "File too large");
}

TEST_F(FileTest, AFifoIsWaitedForUntilSomebodyReads) {
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(*ReadTextFile(Path("fifo")), "through");
  });
  {
    auto file = OutputFile::CreateInPlace(Path("fifo"));
    ASSERT_TRUE(file.has_value());
    ASSERT_TRUE((*file)->Write(AsBytes("through")).has_value());
  }
  reader.join();
}

TEST_F(FileTest, OutputToADeviceIsNotReplaced) {
  auto file = OutputFile::Create("/dev/null");
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->Write(AsBytes("x")).has_value());
  ASSERT_TRUE((*file)->Commit().has_value());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST_F(FileTest, AFullDiskIsTold) {
  auto file = OutputFile::CreateInPlace("/dev/full");
  ASSERT_TRUE(file.has_value());
  const Status status = (*file)->Write(AsBytes("x"));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind, ErrorKind::kIo);
  EXPECT_THAT(status.error().message, HasSubstr("No space left"));
}

TEST_F(FileTest, UnnamedFileCanBeReadBack) {
  auto file = OutputFile::CreateUnnamed();
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE((*file)->Write(AsBytes("abcdef")).has_value());
  std::array<uint8_t, 3> out = {};
  EXPECT_EQ((*file)->ReadAt(2, out), 3u);
  EXPECT_EQ(AsText(out), "cde");
  ASSERT_TRUE((*file)->Truncate(4).has_value());
  ASSERT_TRUE((*file)->Write(AsBytes("XY")).has_value());
  EXPECT_EQ((*file)->ReadAt(3, out), 3u);
  EXPECT_EQ(AsText(out), "dXY");
}

TEST_F(FileTest, MissingFolderIsAnErrorForOutputs) {
  const auto file = OutputFile::Create(Path("no/such/folder"));
  ASSERT_FALSE(file.has_value());
  EXPECT_EQ(file.error().kind, ErrorKind::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr("cannot create " + Path("no/such/folder")));
}

}  // namespace
}  // namespace stackreel::os
