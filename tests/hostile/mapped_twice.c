// Has a page of its own code mapped a second time, as V8 does, and beside that data that is the same as
// its other code: which is nobody's to patch.
#include "hostile.h"

enum { kPage = 4096 };

NOINLINE int leaf(int x) {
  __asm__ volatile("");
  return x * 3 + 1;
}

// In a page of its own, behind that of leaf().
__attribute__((aligned(kPage))) NOINLINE int other(int x) {
  __asm__ volatile("");
  return x * 5 + 2;
}

static char* PageOf(const void* at) { return (char*)((uintptr_t)at & ~(uintptr_t)(kPage - 1)); }

// Where a page of this program's file is.
static off_t OffsetOf(const char* page) {
  FILE* const maps = fopen("/proc/self/maps", "re");
  CHECK(maps != NULL);
  char line[4096];
  unsigned long start, end, offset;
  while (fgets(line, sizeof line, maps) != NULL) {
    CHECK(sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3);
    if ((uintptr_t)page < start || (uintptr_t)page >= end) continue;
    fclose(maps);
    return (off_t)(offset + ((uintptr_t)page - start));
  }
  CHECK(0);
}

static const char *data, *wanted;
static size_t data_size;

static void* Work(void* unused) {
  int (*const again)(int) = (int (*)(int))(uintptr_t)unused;
  unsigned long long count = 0;
  while (!Over()) {
    for (int i = 0; i < 1000; ++i) {
      CHECK(leaf(i) == i * 3 + 1);
      CHECK(again(i) == i * 5 + 2);
    }
    CHECK(memcmp(data, wanted, data_size) == 0);
    count += 1000;
  }
  atomic_fetch_add(&calls, count);
  return NULL;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  const char* const first = PageOf((const void*)leaf);
  const char* const second = PageOf((const void*)other);
  CHECK(first < second && other(1) == 7);
  data_size = (size_t)(second - first);
  char* const kept = malloc(data_size);
  char* const copy = mmap(NULL, data_size + kPage, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(kept != NULL && copy != MAP_FAILED);
  memcpy(kept, first, data_size);
  memcpy(copy, first, data_size);
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  CHECK(file >= 0);
  CHECK(mmap(copy + data_size, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file,
             OffsetOf(second)) != MAP_FAILED);
  close(file);
  data = copy;
  wanted = kept;
  const uintptr_t again = (uintptr_t)copy + ((uintptr_t)(const void*)other - (uintptr_t)first);
  pthread_t* const ids = calloc((size_t)threads, sizeof *ids);
  CHECK(ids != NULL);
  for (int i = 0; i < threads; ++i) CHECK(pthread_create(&ids[i], NULL, Work, (void*)again) == 0);
  for (int i = 0; i < threads; ++i) CHECK(pthread_join(ids[i], NULL) == 0);
  Report("leaf");
  return 0;
}
