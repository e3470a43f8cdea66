// More threads than there are chunks at first, all alive and each calling now and then: threads.c THREADS
// CALLS.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline, noclone)) int step(int x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 1;
}

static pthread_barrier_t all_have_called;
static long calls;

static void* run(void* unused) {
  int sum = step(0);
  pthread_barrier_wait(&all_have_called);
  for (long i = 1; i < calls; ++i) {
    sum = step(sum);
    if (i % 500 == 0) usleep(1000);
  }
  (void)unused;
  return sum == calls ? NULL : &calls;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const int count = atoi(argv[1]);
  calls = atol(argv[2]);
  pthread_t* threads = calloc((size_t)count, sizeof *threads);
  pthread_barrier_init(&all_have_called, NULL, (unsigned)count);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 1 << 16);
  for (int i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], &small, run, NULL) != 0) return 77;
  }
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    wrong += result != NULL;
  }
  printf("%d wrong\n", wrong);
  return 0;
}
