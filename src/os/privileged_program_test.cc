#include "os/privileged_program.h"

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace stackreel::os {
namespace {

using ::testing::HasSubstr;

class PrivilegedProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "stackreel-program-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    program_ = folder_ + "/program";
    std::ofstream(program_) << "x";
    ASSERT_EQ(chmod(program_.c_str(), 0755), 0);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_, program_;
};

TEST_F(PrivilegedProgramTest, OnesOwnProgramIsMeasured) {
  EXPECT_EQ(WhyNotMeasured(program_), "");
  ASSERT_EQ(chmod(program_.c_str(), 04755), 0);  // set-user-ID to who it is already
  EXPECT_EQ(WhyNotMeasured(program_), "");
  EXPECT_EQ(WhyNotMeasured(folder_ + "/gone"), "");
}

// Machines without a list of users (containers, guests of tests) have numbers only.
std::string UserName(uid_t user) {
  const passwd* entry = getpwuid(user);  // NOLINT(concurrency-mt-unsafe)
  return entry == nullptr ? std::to_string(user) : entry->pw_name;
}
std::string GroupName(gid_t id) {
  const group* entry = getgrgid(id);  // NOLINT(concurrency-mt-unsafe)
  return entry == nullptr ? std::to_string(id) : entry->gr_name;
}

TEST_F(PrivilegedProgramTest, AnotherUsersSetUserIdProgramIsNot) {
  constexpr uid_t kDaemon = 1;
  if (chown(program_.c_str(), kDaemon, kDaemon) != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(chmod(program_.c_str(), 0755), 0);
  EXPECT_EQ(WhyNotMeasured(program_), "");
  ASSERT_EQ(chmod(program_.c_str(), 04755), 0);
  EXPECT_THAT(WhyNotMeasured(program_),
              HasSubstr("program runs as " + UserName(kDaemon) + " (set-user-ID)"));
  ASSERT_EQ(chmod(program_.c_str(), 02755), 0);
  EXPECT_THAT(WhyNotMeasured(program_),
              HasSubstr("program runs as group " + GroupName(kDaemon) + " (set-group-ID)"));
  ASSERT_EQ(chmod(program_.c_str(), 02745),
            0);  // without the right to run: a lock, no set-group-ID
  EXPECT_EQ(WhyNotMeasured(program_), "");
}

TEST_F(PrivilegedProgramTest, WhatMayNotBeReadIsNotMeasured) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  ASSERT_EQ(chmod(program_.c_str(), 0111), 0);
  EXPECT_THAT(WhyNotMeasured(program_), HasSubstr("may not be read"));
}

}  // namespace
}  // namespace stackreel::os
