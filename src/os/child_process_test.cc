#include "os/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace stackreel::os {
namespace {

using ::testing::HasSubstr;

TEST(FindCommand, SearchesPathAndTellsWhy) {
  EXPECT_THAT(*FindCommand("sh"), HasSubstr("/sh"));
  EXPECT_EQ(FindCommand("no-such-command-here").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(FindCommand("/no/such/file").error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(FindCommand("/etc/passwd").error().kind, ErrorKind::kPermission);
  EXPECT_EQ(FindCommand("/etc").error().kind, ErrorKind::kPermission);
  EXPECT_EQ(FindCommand("").error().kind, ErrorKind::kNotFound);
}

TEST(ChildProcess, RunsOnlyWhenStartedAndGivesItsCode) {
  const std::string file = ::testing::TempDir() + "stackreel-child-ran";
  std::filesystem::remove(file);
  auto child = ChildProcess::Prepare({"sh", "-c", "echo x > " + file + "; exit 7"});
  ASSERT_TRUE(child.has_value());
  usleep(50'000);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_FALSE((*child)->Wait(false).has_value());
  ASSERT_TRUE((*child)->Start().has_value());
  EXPECT_EQ((*child)->Wait(true), 7);
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove(file);
}

TEST(ChildProcess, SignalsGiveTheirCode) {
  auto child = ChildProcess::Prepare({"sleep", "100"});
  ASSERT_TRUE((*child)->Start().has_value());
  (*child)->Signal(SIGTERM);
  EXPECT_EQ((*child)->Wait(true), 128 + SIGTERM);
}

TEST(ChildProcess, IgnoresAndBlocksWhatItIsTold) {
  SignalState signals = SignalState::Current();
  sigaddset(&signals.ignored, SIGHUP);
  sigaddset(&signals.blocked, SIGUSR1);
  auto child =
      ChildProcess::Prepare({"sh", "-c", "kill -HUP $$; kill -USR1 $$; exit 5"}, false, signals);
  ASSERT_TRUE((*child)->Start().has_value());
  EXPECT_EQ((*child)->Wait(true), 5);
}

TEST(ChildProcess, HasTheSignalsItIsGivenNotOurs) {
  const SignalState before = SignalState::Current();
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, &old);
  signal(SIGPIPE, SIG_IGN);
  auto child = ChildProcess::Prepare({"sh", "-c", "kill -PIPE $$; exit 3"}, false, before);
  ASSERT_TRUE((*child)->Start().has_value());
  EXPECT_EQ((*child)->Wait(true), 128 + SIGPIPE);
  auto sleeper = ChildProcess::Prepare({"sleep", "100"}, false, before);
  ASSERT_TRUE((*sleeper)->Start().has_value());
  (*sleeper)->Signal(SIGTERM);
  EXPECT_EQ((*sleeper)->Wait(true), 128 + SIGTERM);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, &old, nullptr);
}

TEST(ChildProcess, ExecFailuresComeBack) {
  const std::string file = ::testing::TempDir() + "stackreel-child-bad";
  std::ofstream(file) << "#!/no/such/interpreter\n";
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  auto child = ChildProcess::Prepare({file});
  ASSERT_TRUE(child.has_value());
  const Status started = (*child)->Start();
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().kind, ErrorKind::kNotFound);
  EXPECT_EQ((*child)->Wait(true), 127);
  std::filesystem::remove(file);
}

TEST(ChildProcess, ItsOutputKeepsOutOfOursWhereThatIsTaken) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  auto child = ChildProcess::Prepare({"echo", "hello"}, /*stdout_to_stderr=*/true);
  ASSERT_TRUE((*child)->Start().has_value());
  EXPECT_EQ((*child)->Wait(true), 0);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "hello\n");
}

TEST(ChildProcess, OneThatIsKilledBeforeItIsStartedIsAnErrorAndNoSignal) {
  auto child = ChildProcess::Prepare({"sleep", "100"});
  ASSERT_TRUE(child.has_value());
  (*child)->Signal(SIGKILL);
  siginfo_t info = {};  // dead for sure, and still to be waited for
  ASSERT_EQ(waitid(P_PID, (*child)->pid(), &info, WEXITED | WNOWAIT), 0);
  const Status started = (*child)->Start();
  ASSERT_FALSE(started.has_value());
  EXPECT_EQ(started.error().message, "sleep was killed before it began");
  EXPECT_EQ((*child)->Wait(true), 128 + SIGKILL);
}

TEST(ChildProcess, OneThatIsNotStartedEnds) {
  uint32_t pid = 0;
  {
    auto child = ChildProcess::Prepare({"sleep", "100"});
    ASSERT_TRUE(child.has_value());
    pid = (*child)->pid();
  }
  EXPECT_NE(kill(static_cast<pid_t>(pid), 0), 0);
}

}  // namespace
}  // namespace stackreel::os
