// Programs whose memory is of a kind that is rare in recordings: what it does is said by argv[1].
//   many COUNT FILE   runs code in COUNT mappings, of FILE's pages and of memory
//   libraries FILE…   loads, runs and unloads libraries in turn, so that one lies where another lay
//   huge              runs its own text after having copied it over itself, to huge pages
//   jit FOLDER        makes code, tells of it by a map for perf and by a jitdump, and forks
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kHugePage = 2 << 20, kFunctions = 16 };

typedef void (*Function)(void);

// push %rbp; mov %rsp,%rbp; mov $0x4000,%ecx; 1: dec %ecx; jnz 1b; pop %rbp; ret
static const unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0x40, 0x00,
                                      0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};

static void* Checked(void* memory) {
  if (memory != MAP_FAILED && memory != NULL) return memory;
  perror("mappings");
  exit(2);
}

static void* Map(void* at, size_t size, int prot, int flags, int fd, long offset) {
  return Checked(mmap(at, size, prot, MAP_PRIVATE | flags, fd, offset));
}

static double Now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void RunFor(double seconds, const Function* functions, int count) {
  const double end = Now() + seconds;
  for (int i = 0; Now() < end; ++i) functions[i % count]();
}

static void Many(int count, const char* path) {
  enum { kFilePages = 64 };
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < kFilePages; ++i) {
    if (pwrite(fd, kCode, sizeof kCode, (long)i * kPage) < 0) exit(2);
  }
  if (ftruncate(fd, (long)kFilePages * kPage) != 0) exit(2);
  Function* const functions = Checked(calloc((size_t)count, sizeof *functions));
  for (int i = 0; i < count; ++i) {
    if (i % 3 == 0) {
      const long offset = (long)(i % kFilePages) * kPage;
      functions[i] = (Function)Map(NULL, kPage, PROT_READ | PROT_EXEC, 0, fd, offset);
      continue;
    }
    void* const memory = Map(NULL, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS, -1, 0);
    functions[i] = (Function)memcpy(memory, kCode, sizeof kCode);
  }
  RunFor(1, functions, count);
}

static void Libraries(int count, char** paths) {
  for (int i = 0; i < 40; ++i) {
    void* const library = Checked(dlopen(paths[i % count], RTLD_NOW));
    const Function run = (Function)Checked(dlsym(library, "Run"));
    RunFor(0.03, &run, 1);
    dlclose(library);
  }
}

// Six megabytes of text, in which there is an aligned huge page.
#define FOUR(x) x x x x
#define SIXTEEN(x) FOUR(FOUR(x))
static volatile int sink;
__attribute__((noinline)) static void BigText(void) {
  for (int i = 0; i < 1000; ++i) {
    sink += i;
    if (sink == -1) SIXTEEN(asm volatile(".fill 393216, 1, 0x90"););
    sink ^= i;
  }
}

static void Huge(void) {
  extern char etext;
  const uintptr_t start = ((uintptr_t)&BigText + kHugePage - 1) & ~(uintptr_t)(kHugePage - 1);
  const uintptr_t end = (uintptr_t)&etext & ~(uintptr_t)(kHugePage - 1);
  if (end <= start) exit(2);
  const size_t size = end - start;
  void* const copy = Checked(malloc(size));
  memcpy(copy, (const void*)start, size);
  void* const text =
      Map((void*)start, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  madvise(text, size, MADV_HUGEPAGE);
  memcpy(text, copy, size);
  const Function run = &BigText;
  RunFor(1, &run, 1);
}

// As tools/perf/Documentation/jitdump-specification.txt has it.
struct DumpHeader {
  uint32_t magic, version, size, machine, padding, pid;
  uint64_t time, flags;
};
struct CodeLoad {
  uint32_t id, size;
  uint64_t time;
  uint32_t pid, tid;
  uint64_t vma, address, code_size, index;
};

static void Jit(const char* folder) {
  enum { kX86 = 62 };
  const uint32_t pid = (uint32_t)getpid();
  char path[4096];
  snprintf(path, sizeof path, "%s/jit-%u.dump", folder, pid);
  FILE* const dump = Checked(fopen(path, "w+"));
  snprintf(path, sizeof path, "/tmp/perf-%u.map", pid);
  FILE* const map = Checked(fopen(path, "w"));
  Map(NULL, kPage, PROT_READ | PROT_EXEC, 0, fileno(dump), 0);
  const struct DumpHeader header = {0x4a695444, 1, sizeof header, kX86, 0, pid, 0, 0};
  fwrite(&header, sizeof header, 1, dump);
  unsigned char* const memory = Map(NULL, (size_t)kFunctions * kPage,
                                    PROT_READ | PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS, -1, 0);
  Function functions[kFunctions];
  for (int i = 0; i < kFunctions; ++i) {
    unsigned char* const code = memory + (size_t)i * kPage;
    functions[i] = (Function)memcpy(code, kCode, sizeof kCode);
    char name[32];
    const size_t length = (size_t)snprintf(name, sizeof name, "XQjitted_%d", i) + 1;
    const uint64_t at = (uint64_t)code;
    fprintf(map, "%lx %zx %s\n", at, sizeof kCode, name);
    const struct CodeLoad load = {0,          (uint32_t)(sizeof load + length + sizeof kCode),
                                  1,          pid,
                                  pid,        at,
                                  at,         sizeof kCode,
                                  (uint64_t)i};
    fwrite(&load, sizeof load, 1, dump);
    fwrite(name, length, 1, dump);
    fwrite(kCode, sizeof kCode, 1, dump);
  }
  fclose(dump);
  fclose(map);
  RunFor(0.5, functions, kFunctions);
  if (fork() == 0) {
    RunFor(0.5, functions, kFunctions);
    _exit(0);
  }
  wait(NULL);
}

int main(int argc, char** argv) {
  if (argc == 4 && strcmp(argv[1], "many") == 0) {
    Many(atoi(argv[2]), argv[3]);
  } else if (argc > 2 && strcmp(argv[1], "libraries") == 0) {
    Libraries(argc - 2, argv + 2);
  } else if (argc == 2 && strcmp(argv[1], "huge") == 0) {
    Huge();
  } else if (argc == 3 && strcmp(argv[1], "jit") == 0) {
    Jit(argv[2]);
  } else {
    return 1;
  }
  return 0;
}
