// Threads that live for a few calls only, on stacks that are used again.
#include "hostile.h"

NOINLINE long leaf(long x) {
  __asm__ volatile("");
  return x ^ 0x5a;
}

static void* Short(void* number) {
  long sum = 0;
  for (long i = 0; i < 10; ++i) sum += leaf((long)number + i) ^ 0x5a;
  return (void*)sum;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    pthread_t ids[4];
    for (long i = 0; i < 4; ++i) CHECK(pthread_create(&ids[i], NULL, Short, (void*)i) == 0);
    for (long i = 0; i < 4; ++i) {
      void* sum = NULL;
      CHECK(pthread_join(ids[i], &sum) == 0);
      CHECK((long)sum == 10 * i + 45);
    }
    count += 40;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("leaf");
  return 0;
}
