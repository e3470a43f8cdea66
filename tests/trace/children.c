// Makes children in several ways, which execute what further arguments name. children WAY TIMES
// [PROGRAM...]
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

extern char** environ;

NOINLINE int step(int x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 1;
}

static pid_t start(const char* way, char** command) {
  pid_t child = 0;
  if (strcmp(way, "spawn") == 0) {
    return posix_spawn(&child, command[0], NULL, NULL, command, environ) == 0 ? child : -1;
  }
  child = strcmp(way, "vfork") == 0 ? vfork() : fork();
  if (child == 0) {
    // As a shell that looks for it in several folders.
    execv("/nowhere/first", command);
    execv("/nowhere/second", command);
    execv(command[0], command);
    _exit(127);
  }
  return child;
}

int main(int argc, char** argv) {
  const int times = argc > 2 ? atoi(argv[2]) : 0;
  step(1);
  int codes = 0;
  for (int i = 0; i < times; ++i) {
    const pid_t child = start(argv[1], argv + 3);
    int status = 0;
    if (child > 0 && waitpid(child, &status, 0) == child) codes += WEXITSTATUS(status);
  }
  step(2);
  printf("%d\n", codes);
  return 0;
}
