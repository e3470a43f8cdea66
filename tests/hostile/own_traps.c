// A program that uses SIGTRAP itself, by int3 and by raise.
#include <signal.h>

#include "hostile.h"

// Nothing but a trap can be put at the first.
__asm__(
    ".text\n.p2align 4\n"
    ".globl short_one\n.type short_one, @function\nshort_one:\n mov %edi, %eax\n ret\n"
    ".size short_one, . - short_one\n"
    ".globl short_two\n.type short_two, @function\nshort_two:\n mov %edi, %eax\n ret\n"
    ".size short_two, . - short_two\n");
int short_one(int), short_two(int);

static _Thread_local volatile int traps;

NOINLINE int traps_twice(int x) {
  __asm__ volatile("int3");
  raise(SIGTRAP);
  return x + 2;
}
NOINLINE int plain(int x) {
  __asm__ volatile("");
  return x + 3;
}
static void Handler(int number) {
  (void)number;
  traps = traps + 1;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 0; i < 20; ++i, ++count) {
      traps = 0;
      CHECK(traps_twice(i) == i + 2);
      CHECK(traps == 2);
      CHECK(plain(i) == i + 3 && short_one(i) == i && short_two(i) == i);
      CHECK(traps == 2);
    }
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  CHECK(signal(SIGTRAP, Handler) != SIG_ERR);
  RunThreads(Work);
  Report("plain");
  return 0;
}
