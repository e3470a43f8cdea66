// More open calls than any shadow stack holds.
#include "hostile.h"

NOINLINE long down(long depth) {
  if (depth == 0) return 0;
  const long below = down(depth - 1);
  __asm__ volatile("");
  return below + 1;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    CHECK(down(50000) == 50000);
    CHECK(down(10) == 10);
    count += 50012;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("down");
  return 0;
}
