// What the programs here share. Each does one thing that a patcher or tracer can break, checks
// every result itself, and says so by its exit code: 0 all right, 1 something was wrong (told on
// stderr).
//   PROGRAM SECONDS [THREADS]
// It ends earlier when the first byte of the file that HOSTILE_END names becomes 1.
// On stdout: "calls FUNCTION N", how often it has called each function that is meant to be traced.
#ifndef STACKREEL_HOSTILE_H_
#define STACKREEL_HOSTILE_H_

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))
#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno); \
      _exit(1);                                                                                 \
    }                                                                                           \
  } while (0)

static double Now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double deadline;
static int threads = 8;
static atomic_ullong calls;

// Becomes 1 when the program is to end before its time.
static const volatile char* end_now = "";

static void Begin(int argc, char** argv) {
  const char* const path = getenv("HOSTILE_END");
  if (path != NULL) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(file >= 0);
    end_now = mmap(NULL, 1, PROT_READ, MAP_SHARED, file, 0);
    CHECK(end_now != MAP_FAILED);
    close(file);
  }
  deadline = Now() + (argc > 1 ? atof(argv[1]) : 1);
  if (argc > 2) threads = atoi(argv[2]);
  CHECK(threads >= 1 && threads <= 4096);
}
static int Over(void) { return *end_now != 0 || Now() >= deadline; }

// Runs `work` in all threads, and waits for them.
UNUSED static void RunThreads(void* (*work)(void*)) {
  pthread_t* const ids = calloc((size_t)threads, sizeof *ids);
  CHECK(ids != NULL);
  for (long i = 0; i < threads; ++i) {
    CHECK(pthread_create(&ids[i], NULL, work, (void*)i) == 0);
  }
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(ids[i], NULL) == 0);
  free(ids);
}

UNUSED static void Report(const char* function) {
  printf("calls %s %llu\n", function, (unsigned long long)atomic_load(&calls));
  fflush(stdout);
}

#endif  // STACKREEL_HOSTILE_H_
