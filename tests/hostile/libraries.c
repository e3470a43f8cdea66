// Loads and unloads libraries (their paths are in HOSTILE_LIBRARY, with a colon between them) and
// calls into them, again and again. Built as a library with -DLIBRARY=NUMBER.
#ifdef LIBRARY
__attribute__((noinline)) int library_leaf(int x) {
  __asm__ volatile("");
  return x + LIBRARY;
}
int library_entry(int x) { return library_leaf(x) * 2; }
static int begun;
// Runs before dlopen() returns.
__attribute__((constructor)) static void begin(void) { begun = library_leaf(1) == LIBRARY + 1; }
int library_begun(void) { return begun; }
#else
#include <dlfcn.h>

#include "hostile.h"

enum { kCalls = 100 };

typedef int Function(int);
NOINLINE int use_library(const char* path, int number, int x) {
  void* const library = dlopen(path, RTLD_NOW);
  CHECK(library != NULL);
  Function* const entry = (Function*)dlsym(library, "library_entry");
  int (*const begun)(void) = (int (*)(void))dlsym(library, "library_begun");
  CHECK(entry != NULL && begun != NULL && begun());
  for (int i = 0; i < kCalls; ++i) CHECK(entry(x + i) == (x + i + number) * 2);
  CHECK(dlclose(library) == 0);
  return x;
}

static atomic_ullong loads;

static void* Work(void* thread) {
  char paths[4096];
  const char* const given = getenv("HOSTILE_LIBRARY");
  CHECK(given != NULL && strlen(given) < sizeof paths);
  strcpy(paths, given);
  char* const second = strchr(paths, ':');
  CHECK(second != NULL);
  *second = '\0';
  unsigned long long count = 0;
  for (int turn = (int)(long)thread; !Over(); ++turn) {
    const int is_second = turn & 1;
    CHECK(use_library(is_second ? second + 1 : paths, is_second ? 23 : 17, 5) == 5);
    ++count;
  }
  atomic_fetch_add(&calls, count);
  atomic_fetch_add(&loads, count);
  return NULL;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  if (argc <= 2) threads = 2;
  RunThreads(Work);
  Report("use_library");
  // With one thread each use loads the library anew.
  const unsigned long long used = atomic_load(&loads);
  printf("calls library_entry %llu\n", used * kCalls);
  if (threads == 1) printf("calls library_leaf %llu\n", used * (kCalls + 1));
  return 0;
}
#endif
