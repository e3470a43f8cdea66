// Makes children in several ways, which execute what further arguments name. It calls step() twice.
//   children fork|vfork|spawn TIMES PROGRAM...  prints the sum of their exit codes
//   children leave TENTHS PROGRAM...            executes it itself, and a child lives on for so
//   long children wait TENTHS                        calls step() once more each tenth of a second
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

NOINLINE int other(int x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 2;
}

static void wait_for(int tenths) {
  for (int i = 0; i < tenths; ++i) {
    usleep(100000);
    step(other(i));
  }
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
  if (argc < 3) return 2;
  const int times = atoi(argv[2]);
  step(1);
  if (strcmp(argv[1], "wait") == 0) {
    (void)!write(1, "ready\n", 6);
    wait_for(times);
  } else if (strcmp(argv[1], "leave") == 0) {
    if (fork() != 0) {
      execv(argv[3], argv + 3);
      return 127;
    }
    wait_for(times);
  } else {
    int codes = 0;
    for (int i = 0; i < times; ++i) {
      const pid_t child = start(argv[1], argv + 3);
      int status = 0;
      if (child > 0 && waitpid(child, &status, 0) == child) codes += WEXITSTATUS(status);
    }
    printf("%d\n", codes);
  }
  step(2);
  return 0;
}
