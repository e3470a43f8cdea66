// Traced or recorded, and told to end. It runs until a signal ends it; with an argument it takes
// SIGINT instead, and tells after a second of how many came: the number is its exit code. With two
// arguments it makes many calls and ends.
#include <signal.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile sig_atomic_t came;

static void count(int signal) {
  (void)signal;
  ++came;
}

NOINLINE static int step(volatile long* steps) {
  for (int i = 0; i < 1000; ++i) ++*steps;
  return usleep(10000);
}

NOINLINE static long call(long n) {
  for (int i = 0; i < 4; ++i) __asm__ volatile("" : "+r"(n));
  return n * n + 1;
}

int main(int argc, char** argv) {
  volatile long steps = 0;
  (void)argv;
  for (long i = 0; argc > 2 && i < 2000000; ++i) steps = call(i);
  if (argc > 2) return 0;
  if (argc > 1) signal(SIGINT, count);
  (void)!write(STDOUT_FILENO, "ready\n", 6);
  while (came == 0) step(&steps);
  for (int i = 0; i < 100; ++i) step(&steps);
  return came;
}
