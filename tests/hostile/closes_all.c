// Closes every descriptor it did not open, over and over, and counts those it has.
#include <dirent.h>
#include <sys/syscall.h>

#include "hostile.h"

NOINLINE int leaf(int x) {
  __asm__ volatile("");
  return (x ^ 0x55) - 9;
}

static int OpenDescriptors(void) {
  DIR* const folder = opendir("/proc/self/fd");
  CHECK(folder != NULL);
  int count = 0;
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  unsigned long long count = 0;
  syscall(SYS_close_range, 3U, ~0U, 0U);
  const int own = OpenDescriptors();
  while (!Over()) {
    syscall(SYS_close_range, 3U, ~0U, 0U);
    for (int fd = 3; fd < 64; ++fd) close(fd);
    CHECK(OpenDescriptors() == own);
    for (int i = 0; i < 1000; ++i) CHECK(leaf(i) == (i ^ 0x55) - 9);
    count += 1000;
  }
  atomic_fetch_add(&calls, count);
  Report("leaf");
  return 0;
}
