#include "os/own_ids.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stackreel::os {
namespace {

TEST(OwnIdsTest, ProcessesThatHaveEndedAreNoneAnyMore) {
  const pid_t ended = fork();
  if (ended == 0) _exit(0);
  siginfo_t unused;
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(ended), &unused, WEXITED | WNOWAIT), 0);
  const std::set<uint32_t> found = OwnIdsOfProcesses();
  EXPECT_TRUE(found.contains(static_cast<uint32_t>(getpid())));
  EXPECT_TRUE(found.contains(static_cast<uint32_t>(getppid())));
  EXPECT_FALSE(found.contains(static_cast<uint32_t>(ended)));
  waitpid(ended, nullptr, 0);
}

}  // namespace
}  // namespace stackreel::os
