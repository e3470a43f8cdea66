// Sets up what its argument names, and goes on with what tracing would be fatal to then: calls that are
// given a text which is not on their stack, a function that only a trap can be put at, and more calls
// than there is room for until somebody is told.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

__asm__(
    ".text\n.p2align 4\n"
    ".globl short_one\n.type short_one, @function\nshort_one:\n mov %edi, %eax\n ret\n"
    ".size short_one, . - short_one\n"
    ".globl short_two\n.type short_two, @function\nshort_two:\n lea 5(%rdi), %eax\n ret\n"
    ".size short_two, . - short_two\n");
int short_one(int), short_two(int);

NOINLINE size_t read_text(const char* text) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return strlen(text);
}

static long raw_call(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c)
                   : "rcx", "r11", "memory");
  return result;
}

NOINLINE int step(int x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 1;
}
enum { STEPS = 300000, THREADS = 3 };
static size_t make_steps(void) {
  size_t sum = 0;
  for (int i = 0; i < STEPS; ++i) sum += (size_t)step(i);
  return sum;
}
static volatile int begun, limited, done;
static void* run_steps(void* argument) {
  step(1);
  __atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
  while (!limited) step(1);
  make_steps();
  __atomic_fetch_add(&done, 1, __ATOMIC_SEQ_CST);
  while (1) __builtin_ia32_pause();
  return argument;
}

// Whatever an agent might want to ask of the kernel, or only its reading of texts.
static struct sock_fprog filter_against(int every) {
#define AGAINST(number)                                  \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
  static struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      AGAINST(SYS_process_vm_readv),
      BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0),
      AGAINST(SYS_futex),
      AGAINST(SYS_tkill),
      AGAINST(SYS_sched_yield),
      AGAINST(SYS_sigaltstack),
      AGAINST(SYS_rt_sigprocmask),
      AGAINST(SYS_rt_sigreturn),
      AGAINST(SYS_getpid),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const unsigned count = sizeof steps / sizeof steps[0];
  if (!every) steps[3].k = count - 5;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return (struct sock_fprog){(unsigned short)count, steps};
}

static volatile sig_atomic_t taken;
static void take(int signal) { taken = signal; }

static int set_up(const char* what) {
  sigset_t all;
  sigfillset(&all);
  struct sigaction action = {.sa_handler = take};
  const struct sock_fprog filter = filter_against(strstr(what, "every") != NULL);
  if (strcmp(what, "prctl") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  if (strcmp(what, "syscall") == 0) {
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
  }
  if (strcmp(what, "strict") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  if (strcmp(what, "strict_seccomp") == 0) {
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, NULL);
  }
  if (strcmp(what, "every") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  if (strcmp(what, "every_thread") == 0) {
    for (int i = 0; i < THREADS; ++i) {
      pthread_t thread;
      if (pthread_create(&thread, NULL, run_steps, NULL) != 0) return 1;
    }
    while (begun < THREADS) usleep(1000);
    const long refused =
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
    limited = 1;
    return (int)refused;
  }
  if (strcmp(what, "raw_every") == 0 || strcmp(what, "raw_strict") == 0) {
    const long refused = strcmp(what, "raw_every") == 0
                             ? raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&filter)
                             : raw_call(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 0, 0);
    // That is seen from outside, a while later. (Strict mode leaves no clock.)
    for (int i = 0; i < 20000000; ++i) __builtin_ia32_pause();
    return (int)refused;
  }
  if (strcmp(what, "mask") == 0) return pthread_sigmask(SIG_SETMASK, &all, NULL);
  if (strcmp(what, "old_mask") == 0) return sigprocmask(SIG_BLOCK, &all, NULL);
  if (strcmp(what, "own_handler") == 0) return sigaction(SIGTRAP, &action, NULL);
  if (strcmp(what, "handler_mask") == 0) {
    action.sa_mask = all;
    return sigaction(SIGUSR1, &action, NULL);
  }
  return strcmp(what, "nothing");
}

int main(int argc, char** argv) {
  static const char text[] = "a text of the program's own";
  size_t sum = read_text(text) + (size_t)(short_one(1) + short_two(2));
  if (argc < 2 || set_up(argv[1]) != 0) return 77;
  const int is_strict = strstr(argv[1], "strict") != NULL;
  const int rounds = argc < 3 ? 1 : atoi(argv[2]);
  for (int i = 0; i < rounds && (is_strict || strstr(argv[1], "every") != NULL); ++i) sum += make_steps();
  while (limited && done < THREADS) __builtin_ia32_pause();
  for (int i = 0; i < 100; ++i) sum += read_text(text) + (size_t)(short_one(1) + short_two(2));
  if (taken != 0) return 3;  // of traps it is not to see any
  if (strcmp(argv[1], "own_handler") == 0) {
    raise(SIGTRAP);
    if (taken != SIGTRAP) return 4;
  }
  char out[24];
  size_t at = sizeof out;
  for (out[--at] = '\n'; sum != 0; sum /= 10) out[--at] = (char)('0' + sum % 10);
  if (write(STDOUT_FILENO, out + at, sizeof out - at) < 0) return 5;
  if (is_strict) raw_call(SYS_exit, 0, 0, 0);
  return 0;
}
