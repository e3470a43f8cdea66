#include "os/unfinished_output.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include "os/file.h"

namespace stackreel::os {
namespace {

namespace fs = std::filesystem;

class UnfinishedOutputTest : public testing::Test {
 protected:
  UnfinishedOutputTest()
      : folder_(fs::path(testing::TempDir()) / ("unfinished_output_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~UnfinishedOutputTest() override { fs::remove_all(folder_); }

  // The status of a process that does this, and would exit with 0 then.
  static int StatusOf(const std::function<void()>& action) {
    const pid_t pid = fork();
    if (pid == 0) {
      action();
      _exit(0);
    }
    int status = -1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }
  static bool EndedBy(int status, int signal) {
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
  }

  fs::path folder_;
};

TEST_F(UnfinishedOutputTest, GoesWithTheProcess) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    const int status = StatusOf([&] {
      const auto file = OutputFile::Create((folder_ / "file").string());
      const auto recording = OutputFile::CreateBeside((folder_ / "recording").string());
      fs::create_directory(folder_ / "made");
      const UnfinishedOutput made((folder_ / "made").string());
      for (int i = 0; i < 300; ++i) std::ofstream(folder_ / "made" / std::to_string(i)) << i;
      raise(signal);
    });
    EXPECT_TRUE(EndedBy(status, signal)) << strsignal(signal) << ", status " << status;
    EXPECT_TRUE(fs::is_empty(folder_)) << *fs::directory_iterator(folder_);
  }
}

TEST_F(UnfinishedOutputTest, WhatIsFinishedStays) {
  const int status = StatusOf([&] {
    const auto file = OutputFile::Create((folder_ / "file").string());
    if (!(*file)->Commit()) _exit(1);
    std::ofstream(folder_ / "other") << "text";
    {
      const UnfinishedOutput other((folder_ / "other").string());
    }
    raise(SIGTERM);
  });
  EXPECT_TRUE(EndedBy(status, SIGTERM));
  EXPECT_TRUE(fs::exists(folder_ / "file"));
  EXPECT_TRUE(fs::exists(folder_ / "other"));
}

TEST_F(UnfinishedOutputTest, IgnoredSignalsStayIgnored) {
  const int status = StatusOf([&] {
    ::signal(SIGHUP, SIG_IGN);
    const auto file = OutputFile::Create((folder_ / "file").string());
    raise(SIGHUP);
    if (!(*file)->Commit()) _exit(1);
  });
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(fs::exists(folder_ / "file"));
}

}  // namespace
}  // namespace stackreel::os
