// Lives on functions of the C library that agents are tempted to call themselves.
#include "hostile.h"

static void* Work(void* unused) {
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 1; i < 200; ++i) {
      struct timespec a, b;
      CHECK(clock_gettime(CLOCK_MONOTONIC, &a) == 0);
      char* const text = malloc((size_t)i * 16);
      CHECK(text != NULL);
      char* (*volatile copy)(void*, const void*, size_t) =
          (char* (*)(void*, const void*, size_t))memcpy;
      memset(text, i, (size_t)i * 16);
      copy(text + i * 8, text, (size_t)i * 8);
      for (int k = 0; k < i * 16; ++k) CHECK(text[k] == (char)i);
      free(text);
      CHECK(clock_gettime(CLOCK_MONOTONIC, &b) == 0);
      CHECK(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec));
      CHECK(getpid() > 0);
      ++count;
    }
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("getpid");
  return 0;
}
