// All signals are blocked in all threads.
#include <signal.h>

#include "hostile.h"

NOINLINE int leaf(int x) {
  __asm__ volatile("");
  return x * 3 + 1;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 0; i < 1000; ++i) CHECK(leaf(i) == i * 3 + 1);
    count += 1000;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  sigset_t all;
  sigfillset(&all);
  CHECK(pthread_sigmask(SIG_SETMASK, &all, NULL) == 0);
  RunThreads(Work);
  Report("leaf");
  return 0;
}
