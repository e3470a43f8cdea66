// A leaf that all threads call as fast as they can, half of them by a pointer.
#include "hostile.h"

NOINLINE int leaf(int x) {
  __asm__ volatile("");
  return ((x * 3 + 1) ^ (x >> 3)) * (x | 5) + 9;
}
static int Expected(int x) { return ((x * 3 + 1) ^ (x >> 3)) * (x | 5) + 9; }

static void* Work(void* number) {
  int (*volatile pointer)(int) = leaf;
  unsigned long long count = 0;
  int x = (int)(long)number;
  while (!Over()) {
    for (int i = 0; i < 500; ++i, x = (x + 7) & 0xffff) {
      CHECK(leaf(x) == Expected(x));
      CHECK(pointer(x) == Expected(x));
    }
    count += 1000;
  }
  atomic_fetch_add(&calls, count);
  return NULL;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("leaf");
  return 0;
}
