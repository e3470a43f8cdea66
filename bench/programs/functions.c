// A process with many functions and threads, to be attached to.
//   functions THREADS BUSY      BUSY threads call all functions over and over, the rest sleep
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// A thousand of them: f000 to f999, each of a few instructions.
#define FUNCTION(n)                                            \
  __attribute__((noinline, noclone)) int f##n(int* at, int x) { \
    for (int i = 0; i < x; ++i) at[i & 7] += x * 1##n;         \
    return at[x & 7];                                          \
  }
#define TEN(define, n)                                                                        \
  define(n##0) define(n##1) define(n##2) define(n##3) define(n##4) define(n##5) define(n##6) \
      define(n##7) define(n##8) define(n##9)
#define HUNDRED(define, n)                                                                        \
  TEN(define, n##0) TEN(define, n##1) TEN(define, n##2) TEN(define, n##3) TEN(define, n##4)       \
  TEN(define, n##5) TEN(define, n##6) TEN(define, n##7) TEN(define, n##8) TEN(define, n##9)
#define THOUSAND(define)                                                                    \
  HUNDRED(define, 0) HUNDRED(define, 1) HUNDRED(define, 2) HUNDRED(define, 3)               \
  HUNDRED(define, 4) HUNDRED(define, 5) HUNDRED(define, 6) HUNDRED(define, 7)               \
  HUNDRED(define, 8) HUNDRED(define, 9)

THOUSAND(FUNCTION)

#define NAME(n) f##n,
static int (*const functions[])(int*, int) = {THOUSAND(NAME)};
static int busy;

static void* Work(void* number) {
  if ((long)number >= busy) pause();
  int at[8] = {0};
  while (1) {
    for (int i = 0; i < 1000; ++i) functions[i](at, i & 3);
  }
}

int main(int argc, char** argv) {
  const int threads = argc > 1 ? atoi(argv[1]) : 1;
  busy = argc > 2 ? atoi(argv[2]) : threads;
  for (long i = 1; i < threads; ++i) {
    pthread_t id;
    if (pthread_create(&id, NULL, Work, (void*)i) != 0) return 1;
  }
  puts("ready");
  fflush(stdout);
  Work((void*)0);
}
