// A server that forks its workers beforehand, and anew when one ends; threads fork too.
#include <sys/wait.h>

#include "hostile.h"

NOINLINE int handle(int request) {
  __asm__ volatile("");
  return request * 7 + 3;
}

NOINLINE int child(int number) {
  int sum = 0;
  for (int i = 0; i < 1000; ++i) {
    CHECK(handle(i) == i * 7 + 3);
    ++sum;
  }
  return sum == 1000 ? 20 + number : 0;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    pid_t pids[4];
    for (int i = 0; i < 4; ++i) {
      pids[i] = fork();
      CHECK(pids[i] >= 0);
      if (pids[i] == 0) _exit(child(i));
    }
    for (int i = 0; i < 4; ++i) {
      int status = 0;
      CHECK(waitpid(pids[i], &status, 0) == pids[i]);
      CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 20 + i);
      CHECK(handle(i) == i * 7 + 3);
      count += 1001;  // with the child's
    }
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  if (argc <= 2) threads = 2;
  RunThreads(Work);
  Report("handle");
  return 0;
}
