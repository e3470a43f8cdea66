// No memory may become executable that was writable (PR_SET_MDWE, Linux 6.3).
#include <sys/mman.h>
#include <sys/prctl.h>

#include "hostile.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_MDWE_REFUSE_EXEC_GAIN 1
#endif

NOINLINE int leaf(int x) {
  __asm__ volatile("");
  return x * 2 - 3;
}

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 0; i < 1000; ++i) CHECK(leaf(i) == i * 2 - 3);
    count += 1000;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  if (prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) != 0) {
    fprintf(stderr, "this kernel has no PR_SET_MDWE\n");
    return 77;
  }
  RunThreads(Work);
  Report("leaf");
  return 0;
}
