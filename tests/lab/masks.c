/* What record_masks.sh records: programs whose keys of pointer authentication change, and which say
   so. Lines on standard output, flushed, times of CLOCK_MONOTONIC in ns:

     STATE TIME PID TID WHAT KEYS INSN_MASK DATA_MASK    as prctl and ptrace report them
     CHAIN TIME PID TID FUNCTION<FUNCTION<…              from now on, who calls burn, innermost first

   masks run SECONDS PLAIN   all of what follows, one after the other; PLAIN: the same program, built
                             without signed return addresses
   masks before SECONDS      disables a key and burns; when /tmp/go is there it enables the key, burns
                             on, and ends when /tmp/stop is there
   masks once NAME SECONDS   says its state and burns: what is executed later */
#define _GNU_SOURCE 1
#include <linux/elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define KEEP_FRAME __asm__ volatile("" ::: "memory") /* nothing becomes a tail call */
#define CHECK(condition) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      _exit(9); \
    } \
  } while (0)

enum { kResetKeys = 54, kSetEnabledKeys = 60, kGetEnabledKeys = 61 }; /* PR_PAC_* */
enum { kKeyIA = 1 };
enum { kRegsetMask = 0x406, kRegsetKeys = 0x40a }; /* NT_ARM_PAC_MASK, NT_ARM_PAC_ENABLED_KEYS */

static double seconds;
static volatile uint64_t sink;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* By itself: a signed function of libc could not return once its key is off. */
static inline long pac_prctl(unsigned long what, unsigned long a, unsigned long b) {
  register long x8 __asm__("x8") = SYS_prctl;
  register long x0 __asm__("x0") = (long)what;
  register unsigned long x1 __asm__("x1") = a, x2 __asm__("x2") = b, x3 __asm__("x3") = 0;
  register unsigned long x4 __asm__("x4") = 0;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}

struct seen {
  uint64_t keys, insn, data;
};

/* In a child, which may trace its parent's threads. */
static void look_at(pid_t tid, struct seen* out) {
  struct {
    uint64_t data, insn;
  } masks;
  struct iovec of_masks = {&masks, sizeof masks}, of_keys = {&out->keys, sizeof out->keys};
  CHECK(ptrace(PTRACE_SEIZE, tid, 0, 0) == 0);
  CHECK(ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0);
  CHECK(waitpid(tid, NULL, __WALL) == tid);
  CHECK(ptrace(PTRACE_GETREGSET, tid, (void*)kRegsetMask, &of_masks) == 0);
  CHECK(ptrace(PTRACE_GETREGSET, tid, (void*)kRegsetKeys, &of_keys) == 0);
  CHECK(ptrace(PTRACE_DETACH, tid, 0, 0) == 0);
  out->insn = masks.insn;
  out->data = masks.data;
}

static NOINLINE void say_state(const char* what) {
  const uint64_t since = now();
  const pid_t tid = (pid_t)syscall(SYS_gettid);
  int ends[2];
  struct seen seen;
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    look_at(tid, &seen);
    CHECK(write(ends[1], &seen, sizeof seen) == sizeof seen);
    _exit(0);
  }
  CHECK(read(ends[0], &seen, sizeof seen) == sizeof seen);
  CHECK(waitpid(child, NULL, 0) == child);
  close(ends[0]);
  close(ends[1]);
  CHECK((uint64_t)pac_prctl(kGetEnabledKeys, 0, 0) == seen.keys);
  printf("STATE %lu %d %d %s %#lx %#lx %#lx\n", since, getpid(), tid, what, seen.keys, seen.insn,
         seen.data);
  KEEP_FRAME;
}

/* The emulated CPU does not mark pages as used by itself, and of a page that a forked child has not
   used yet the kernel copies nothing into a sample: its stack would end there. */
static inline void use_stack(void) {
  extern char** environ;
  for (volatile const char* at = (const char*)&at; at < (const char*)environ; at += 4096) (void)*at;
}

static NOINLINE void say_chain(const char* chain) {
  printf("CHAIN %lu %d %ld %s\n", now(), getpid(), syscall(SYS_gettid), chain);
  KEEP_FRAME;
}

static NOINLINE void burn(double for_seconds) {
  const uint64_t end = now() + (uint64_t)(for_seconds * 1e9);
  while (now() < end) {
    uint64_t x = sink | 1;
    for (int i = 0; i < 20000; ++i) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      __asm__ volatile("" : "+r"(x));
    }
    sink = x;
  }
}

/* Two frames that are signed only if the key was on when they were entered. */
static NOINLINE void inner(double for_seconds) {
  burn(for_seconds);
  KEEP_FRAME;
}
static NOINLINE void outer(double for_seconds) {
  inner(for_seconds);
  KEEP_FRAME;
}

/* Its own frame was signed, those that it calls are not while the key is off. */
static NOINLINE void toggle(void) {
  CHECK(pac_prctl(kSetEnabledKeys, kKeyIA, 0) == 0);
  say_state("disabled");
  say_chain("burn<inner<outer<toggle<run<main");
  outer(seconds);
  const pid_t child = fork();
  if (child == 0) { /* it has its parent's keys */
    use_stack();
    say_state("forked");
    say_chain("burn<inner<outer<toggle<run<main");
    outer(seconds);
    _exit(0);
  }
  CHECK(waitpid(child, NULL, 0) == child);
  CHECK(pac_prctl(kSetEnabledKeys, kKeyIA, kKeyIA) == 0);
  say_state("enabled");
  say_chain("burn<inner<outer<toggle<run<main");
  outer(seconds);
  KEEP_FRAME;
}

/* What was signed by the old keys must not return any more. */
static NOINLINE void reset(void) {
  CHECK(pac_prctl(kResetKeys, 0, 0) == 0);
  say_state("reset");
  say_chain("burn<inner<outer<reset<run<main");
  outer(seconds);
  _exit(0);
}

/* A key is a thread's. */
static NOINLINE void in_thread(void) {
  CHECK(pac_prctl(kSetEnabledKeys, kKeyIA, 0) == 0);
  say_state("thread");
  say_chain("burn<inner<outer<in_thread<thread_main");
  outer(seconds);
  CHECK(pac_prctl(kSetEnabledKeys, kKeyIA, kKeyIA) == 0);
  KEEP_FRAME;
}
static NOINLINE void* thread_main(void* nothing) {
  in_thread();
  KEEP_FRAME;
  return nothing;
}

static void execute(const char* program, const char* name) {
  char text[32];
  snprintf(text, sizeof text, "%f", seconds);
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, "once", name, text, NULL);
    _exit(8);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static NOINLINE void run(const char* self, const char* plain) {
  say_state("began");
  say_chain("burn<inner<outer<run<main");
  outer(seconds);
  toggle();
  const pid_t child = fork();
  if (child == 0) {
    use_stack();
    reset();
  }
  CHECK(waitpid(child, NULL, 0) == child);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, thread_main, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  say_state("after-thread");
  execute(self, "executed");
  execute(plain, "unsigned");
  KEEP_FRAME;
}

static NOINLINE void before(void) {
  CHECK(pac_prctl(kSetEnabledKeys, kKeyIA, 0) == 0);
  say_state("before");
  say_chain("burn<inner<outer<before<main");
  while (access("/tmp/go", F_OK) != 0) outer(0.05);
  CHECK(pac_prctl(kSetEnabledKeys, kKeyIA, kKeyIA) == 0);
  say_state("before-enabled");
  while (access("/tmp/stop", F_OK) != 0) outer(0.05);
  KEEP_FRAME;
}

static NOINLINE void once(const char* name) {
  say_state(name);
  say_chain("burn<inner<outer<once<main");
  outer(seconds);
  KEEP_FRAME;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(argc >= 3);
  seconds = atof(argv[argc - (strcmp(argv[1], "run") == 0 ? 2 : 1)]);
  if (strcmp(argv[1], "run") == 0) {
    CHECK(argc == 4);
    run("/proc/self/exe", argv[3]);
  } else if (strcmp(argv[1], "before") == 0) {
    before();
  } else {
    once(argv[2]);
  }
  return 0;
}
