// What is traced and sampled at once: several threads, functions that are called often and return
// soon, some that go on for long, callers that differ in nothing but their name, recursion, tail
// calls, calls by pointer and out of the C library.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN __attribute__((noinline, noclone))

static volatile uint64_t sink;

PLAIN uint64_t leaf(uint64_t x) {
  for (int i = 0; i < 200; ++i) x = x * 6364136223846793005u + 1;
  sink = x;
  return x;
}
PLAIN uint64_t middle(uint64_t x) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 20; ++i) sum += leaf(x + i);
  return sum + 1;
}
PLAIN uint64_t left(uint64_t x) {
  volatile uint64_t room[5];
  room[0] = x;
  return middle(room[0]) + room[0];
}
PLAIN uint64_t right(uint64_t x) {
  volatile uint64_t room[5];
  room[0] = x + 1;
  return middle(room[0]) + room[0];
}
PLAIN uint64_t recurse(uint64_t n) { return n == 0 ? leaf(n) : recurse(n - 1) + 1; }
PLAIN uint64_t tail_callee(uint64_t x) { return middle(x) + 3; }
PLAIN uint64_t tail_caller(uint64_t x) { return tail_callee(x + 1); }
PLAIN int compare(const void* a, const void* b) {
  const uint64_t x = leaf(*(const uint64_t*)a), y = leaf(*(const uint64_t*)b);
  return x < y ? -1 : x > y;
}
PLAIN void sort(void) {
  uint64_t numbers[64];
  for (uint64_t i = 0; i < 64; ++i) numbers[i] = i * 7919 % 64;
  qsort(numbers, 64, sizeof(numbers[0]), compare);
}
static uint64_t (*volatile const by_pointer[])(uint64_t) = {left, right};
PLAIN uint64_t dispatch(uint64_t x) { return by_pointer[x & 1](x) + 1; }

static uint64_t Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

// A call each of which goes on for some milliseconds.
#define PHASE(name, work)                                      \
  PLAIN void name(void) {                                      \
    for (const uint64_t end = Now() + 8000000; Now() < end;) { \
      for (uint64_t i = 0; i < 20; ++i) work;                  \
    }                                                          \
  }
PHASE(phase_sides, sink = left(i) + right(i))
PHASE(phase_recurse, sink = recurse(9))
PHASE(phase_tail, sink = tail_caller(i) + 1)
PHASE(phase_sort, sort())
PHASE(phase_dispatch, sink = dispatch(i))

PLAIN void* rounds(void* count) {
  for (long i = 0; i < (long)count; ++i) {
    phase_sides();
    phase_recurse();
    phase_tail();
    phase_sort();
    phase_dispatch();
  }
  return NULL;
}

int main(int argc, char** argv) {
  const long count = argc > 1 ? atol(argv[1]) : 10;
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) {
    if (pthread_create(&threads[i], NULL, rounds, (void*)count) != 0) return 1;
  }
  rounds((void*)count);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  puts("done");
  return 0;
}
