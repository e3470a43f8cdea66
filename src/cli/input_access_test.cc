#include "cli/input_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/recording_input.h"
#include "cli/trace_input.h"

namespace stackreel::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// As somebody who may not read what is made here. Root may read everything: it becomes another.
class AsNobody {
 public:
  AsNobody() : was_(geteuid()) { EXPECT_TRUE(was_ != 0 || seteuid(kNobody) == 0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() { EXPECT_EQ(seteuid(was_), 0); }

 private:
  uid_t was_;
};

class InputAccessTest : public testing::Test {
 protected:
  InputAccessTest()
      : above_("/tmp/stackreel-input-access-" + std::to_string(getpid())), folder_(above_ / "a") {
    fs::create_directories(folder_);
    Allow(above_, fs::perms::all);
    Allow(folder_, fs::perms::all);
  }
  ~InputAccessTest() override {
    for (const fs::path& path : {above_, folder_}) Allow(path, fs::perms::all);
    fs::remove_all(above_);
  }
  static void Allow(const fs::path& path, fs::perms perms) { fs::permissions(path, perms); }
  static void Close(const fs::path& path) { Allow(path, fs::perms::none); }
  void Make(const std::string& name) const { std::ofstream(folder_ / name) << "text"; }
  static Error TraceError(const std::string& path) {
    const AsNobody nobody;
    const auto opened = OpenTraceDirectory(path);
    return opened ? Error() : opened.error();
  }
  static Error RecordingError(const std::string& path) {
    const AsNobody nobody;
    const auto opened = OpenRecordingFiles(path);
    return opened ? Error() : opened.error();
  }

  fs::path above_, folder_;
};

TEST_F(InputAccessTest, NamesTheDirectoryThatIsClosed) {
  Make("calls");
  Make("facts");
  Close(folder_);
  for (const Error& error : {TraceError(folder_), RecordingError(folder_)}) {
    EXPECT_EQ(error.kind, ErrorKind::kPermission);
    EXPECT_EQ(error.ToString(),
              "cannot look into the directory " + folder_.string() + ": Permission denied");
    EXPECT_THAT(error.cure, HasSubstr("sudo chown -R \"$USER\" " + folder_.string() + " "));
  }
}

TEST_F(InputAccessTest, NamesTheFileThatIsClosed) {
  // Of a trace, of one of uftrace's, and of perf record --threads.
  for (const std::string name : {"calls", "facts", "info", "data"}) {
    Make(name);
    if (name == "facts") Make("calls");
    Close(folder_ / name);
    std::vector<Error> errors = {TraceError(folder_)};
    // What has calls is known to be a trace, and no recording of samples.
    if (!fs::exists(folder_ / "calls")) errors.push_back(RecordingError(folder_));
    for (const Error& error : errors) {
      EXPECT_EQ(error.kind, ErrorKind::kPermission);
      EXPECT_EQ(error.ToString(),
                "cannot open " + (folder_ / name).string() + ": Permission denied");
      EXPECT_THAT(error.cure, HasSubstr("sudo chown -R \"$USER\" " + folder_.string() + " "));
    }
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove(entry);
  }
}

TEST_F(InputAccessTest, TellsOfAClosedFolderAbove) {
  Close(above_);
  for (const Error& error : {TraceError(folder_), RecordingError(folder_)}) {
    EXPECT_EQ(error.kind, ErrorKind::kPermission);
    EXPECT_THAT(error.cure, HasSubstr("sudo cp -r " + folder_.string() + " . "));
    EXPECT_THAT(error.cure, HasSubstr("\"$USER\" ./a "));
  }
}

TEST_F(InputAccessTest, DirectoryOfSomethingElseIsNoRecording) {
  const Error error = RecordingError(folder_);
  EXPECT_EQ(error.kind, ErrorKind::kNotFound);
  EXPECT_EQ(error.ToString(),
            folder_.string() + ": this directory is neither a trace nor a recording");
  Make("perf.data");
  EXPECT_EQ(RecordingError(folder_).cure, "-i " + (folder_ / "perf.data").string());
}

}  // namespace
}  // namespace stackreel::cli
