// The cost of a traced call: ARGV[1] calls of a small function in ten stretches. Says the best
// stretch and the mean of all, in ns a call; and the mean of the CPU time that it had itself.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define NOT_TRACED __attribute__((no_instrument_function))

static NOT_TRACED inline double Now(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

volatile int sink;

__attribute__((noinline, noclone)) int leaf(int x) {
  __asm__ volatile("");
  return ((x * 3 + 1) ^ (x >> 3)) * (x | 5) + 9;
}

__attribute__((noinline, noclone)) double run(int calls) {
  double best = 1e18;
  for (int stretch = 0; stretch < 10; ++stretch) {
    const double begin = Now(CLOCK_MONOTONIC);
    for (int i = 0; i < calls / 10; ++i) sink += leaf(i);
    const double each = (Now(CLOCK_MONOTONIC) - begin) / (calls / 10);
    if (each < best) best = each;
  }
  return best;
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 10000000;
  const double begin = Now(CLOCK_MONOTONIC);
  const double cpu_begin = Now(CLOCK_PROCESS_CPUTIME_ID);
  const double best = run(calls);
  const double cpu = (Now(CLOCK_PROCESS_CPUTIME_ID) - cpu_begin) / calls;
  fprintf(stderr, "leaf calls=%d best=%.2f mean=%.2f cpu=%.2f\n", calls, best,
          (Now(CLOCK_MONOTONIC) - begin) / calls, cpu);
  return 0;
}
