// Children that share their parent's memory until they exec or end.
#include <spawn.h>
#include <sys/wait.h>

#include "hostile.h"

extern char** environ;

NOINLINE int spawn_one(int kind) {
  char* const arguments[] = {"true", NULL};
  int status = 0;
  pid_t pid;
  if (kind == 0) {
    pid = vfork();
    if (pid == 0) _exit(7);
  } else if (kind == 1) {
    pid = vfork();
    if (pid == 0) {
      execve("/bin/true", arguments, environ);
      _exit(9);
    }
  } else {
    CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, arguments, environ) == 0);
  }
  CHECK(pid > 0);
  pid_t ended;
  CHECK((ended = waitpid(pid, &status, 0)) == pid);
  CHECK(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    CHECK(spawn_one(0) == 7);
    CHECK(spawn_one(1) == 0);
    CHECK(spawn_one(2) == 0);
    count += 3;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  if (argc <= 2) threads = 2;
  RunThreads(Work);
  Report("spawn_one");
  return 0;
}
