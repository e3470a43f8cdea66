// Loads and unloads a library (its path is in HOSTILE_LIBRARY) and calls into it, again and again.
// Built as a library with -DLIBRARY.
#ifdef LIBRARY
__attribute__((noinline)) int library_leaf(int x) {
  __asm__ volatile("");
  return x + 17;
}
int library_entry(int x) { return library_leaf(x) * 2; }
#else
#include <dlfcn.h>

#include "hostile.h"

NOINLINE int use_library(const char* path, int x) {
  void* const library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL);
  int (*const entry)(int) = (int (*)(int))dlsym(library, "library_entry");
  CHECK(entry != NULL);
  for (int i = 0; i < 100; ++i) CHECK(entry(x + i) == (x + i + 17) * 2);
  CHECK(dlclose(library) == 0);
  return x;
}

static void* Work(void* unused) {
  const char* const path = getenv("HOSTILE_LIBRARY");
  CHECK(path != NULL);
  unsigned long long count = 0;
  while (!Over()) {
    CHECK(use_library(path, 5) == 5);
    ++count;
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  if (argc <= 2) threads = 2;
  RunThreads(Work);
  Report("use_library");
  return 0;
}
#endif
