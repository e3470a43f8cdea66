#include "os/own_thread.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace stackreel::os {
namespace {

// What one traces another can trace at once when it has ended.
TEST(OwnThread, HasLetGoOfWhatItTracedWhenItEnds) {
  const pid_t child = fork();
  if (child == 0) {
    while (true) pause();
  }
  const UrgentSection urgent;  // else it would be overtaken less often
  for (int i = 0; i < 5000; ++i) {
    OwnThread thread;
    thread.RunBeforeOthers();
    const int error =
        thread.Run([child] { return ptrace(PTRACE_SEIZE, child, 0, 0) == 0 ? 0 : errno; });
    if (error != 0 && i == 0) break;  // it is not allowed here
    EXPECT_EQ(error, 0) << "after " << i << " times";
    if (error != 0) break;
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace stackreel::os
