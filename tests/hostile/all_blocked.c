// All signals are blocked in all threads.
#include <signal.h>

#include "hostile.h"

// Nothing but a trap can be put at the first, and none may be.
__asm__(
    ".text\n.p2align 4\n"
    ".globl short_one\n.type short_one, @function\nshort_one:\n mov %edi, %eax\n ret\n"
    ".size short_one, . - short_one\n"
    ".globl short_two\n.type short_two, @function\nshort_two:\n mov %edi, %eax\n ret\n"
    ".size short_two, . - short_two\n");
int short_one(int), short_two(int);

NOINLINE int leaf(int x) {
  __asm__ volatile("");
  return x * 3 + 1;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 0; i < 1000; ++i)
      CHECK(leaf(i) == i * 3 + 1 && short_one(i) == i && short_two(i) == i);
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
