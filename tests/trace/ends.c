// Ends in the way that its argument names, with calls open in two threads.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile int ready;

NOINLINE static void wait_long(void) {
  ready = 1;
  while (1) pause();
}
NOINLINE static void* other(void* unused) {
  wait_long();
  return unused;
}

NOINLINE static void end_by(const char* way, char** arguments) {
  // Longer than the tracer takes between two looks, even on a busy machine.
  if (strcmp(way, "kill") == 0 || strcmp(way, "fault") == 0) usleep(1000000);
  if (strcmp(way, "exit") == 0) exit(3);
  if (strcmp(way, "_exit") == 0) _exit(3);
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(way, "fault") == 0) *(volatile int*)(arguments == NULL ? 1UL : 0UL) = 1;
  if (strcmp(way, "exec") == 0) execl("/bin/true", "true", NULL);
  if (strcmp(way, "exec_fails") == 0) execl("/nowhere", "nowhere", NULL);
}

int main(int argc, char** argv) {
  pthread_t thread;
  const char* const way = argc > 1 ? argv[1] : "";
  if (argc > 2 && pthread_create(&thread, NULL, other, NULL) != 0) return 1;
  while (argc > 2 && !ready) usleep(1000);
  usleep(1000);
  end_by(way, argv);
  return 0;
}
