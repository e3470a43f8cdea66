#include "tracer/trace_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace stackreel::tracer {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::Pair;

// As on a full disk: no file may have a byte.
class NoSpace {
 public:
  NoSpace() : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &limit_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = limit_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  NoSpace(const NoSpace&) = delete;
  NoSpace& operator=(const NoSpace&) = delete;
  ~NoSpace() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit_), 0);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  sighandler_t handler_;
  rlimit limit_ = {};
};

class TraceOutputTest : public testing::Test {
 protected:
  TraceOutputTest()
      : folder_(fs::path(testing::TempDir()) / ("trace_output_" + std::to_string(getpid()))),
        trace_(folder_ / "a") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Make("a", "last");
    Make("a.old", "one before");
  }
  ~TraceOutputTest() override { fs::remove_all(folder_); }

  void Make(const std::string& name, const std::string& calls) const {
    fs::create_directory(folder_ / name);
    std::ofstream(folder_ / name / "calls") << calls;
  }
  // What each trace in the folder has as its calls.
  [[nodiscard]] std::map<std::string, std::string> All() const {
    std::map<std::string, std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      std::ifstream calls(entry.path() / "calls");
      all[entry.path().filename()] = {std::istreambuf_iterator<char>(calls), {}};
    }
    return all;
  }

  fs::path folder_;
  std::string trace_;
};

TEST_F(TraceOutputTest, FullDiskLeavesAllAsItWas) {
  const auto before = All();
  for (int i = 0; i < 2; ++i) {
    const NoSpace no_space;
    const auto output = TraceOutput::Create(trace_, 1);
    ASSERT_FALSE(output);
    EXPECT_EQ(output.error().kind, ErrorKind::kIo);
    EXPECT_EQ(All(), before);
  }
}

TEST_F(TraceOutputTest, DiscardLeavesAllAsItWas) {
  const auto before = All();
  const auto output = TraceOutput::Create(trace_, 1);
  ASSERT_TRUE(output);
  EXPECT_NE(All(), before);
  (*output)->Discard();
  EXPECT_EQ(All(), before);
}

TEST_F(TraceOutputTest, OldOneThatIsNoTraceLeavesAllAsItWas) {
  std::ofstream(folder_ / "a.old" / "mine") << "text";
  const auto before = All();
  EXPECT_FALSE(TraceOutput::Create(trace_, 1));
  EXPECT_EQ(All(), before);
}

// By a tracer that was killed while it began.
TEST_F(TraceOutputTest, WhatWasLeftToBeReplacedGoes) {
  Make("a.old.replaced-77", "left");
  Make("a.old.replaced-x", "somebody's");
  const auto output = TraceOutput::Create(trace_, 1);
  ASSERT_TRUE(output);
  (*output)->Keep();
  EXPECT_THAT(All(), ElementsAre(Pair("a", testing::Not("last")), Pair("a.old", "last"),
                                 Pair("a.old.replaced-x", "somebody's")));
}

TEST_F(TraceOutputTest, WhatWasLeftToBeReplacedIsTheOldOneAgain) {
  fs::rename(folder_ / "a.old", folder_ / "a.old.replaced-77");
  fs::remove_all(trace_);
  const auto output = TraceOutput::Create(trace_, 1);
  ASSERT_TRUE(output);
  (*output)->Keep();
  EXPECT_THAT(All(), ElementsAre(Pair("a", testing::_), Pair("a.old", "one before")));
}

// Of a tracer that begins just now.
TEST_F(TraceOutputTest, WhatIsAboutToBeReplacedStays) {
  const auto first = TraceOutput::Create(trace_, 1);
  ASSERT_TRUE(first);
  const auto with_three = All();
  EXPECT_EQ(with_three.size(), 3u);
  EXPECT_FALSE(TraceOutput::Create(trace_, 1));
  EXPECT_EQ(All(), with_three);
}

TEST_F(TraceOutputTest, OnceBegunTheLastIsTheOldOne) {
  const auto output = TraceOutput::Create(trace_, 1);
  ASSERT_TRUE(output);
  (*output)->Keep();
  EXPECT_THAT(All(), ElementsAre(Pair("a", testing::Not("last")), Pair("a.old", "last")));
}

}  // namespace
}  // namespace stackreel::tracer
