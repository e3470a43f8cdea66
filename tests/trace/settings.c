// Sets up what its argument names, and goes on with what tracing would be fatal to then: calls that are
// given a text which is not on their stack, and a function that only a trap can be put at.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
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

static struct sock_fprog filter_against(int number) {
  static struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  steps[1].k = (unsigned)number;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  return (struct sock_fprog){sizeof steps / sizeof steps[0], steps};
}

static volatile sig_atomic_t taken;
static void take(int signal) { taken = signal; }

static int set_up(const char* what) {
  sigset_t all;
  sigfillset(&all);
  struct sigaction action = {.sa_handler = take};
  const struct sock_fprog filter = filter_against(SYS_process_vm_readv);
  if (strcmp(what, "prctl") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
  if (strcmp(what, "syscall") == 0) {
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
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
  for (int i = 0; i < 100; ++i) sum += read_text(text) + (size_t)(short_one(1) + short_two(2));
  if (taken != 0) return 3;  // of traps it is not to see any
  if (strcmp(argv[1], "own_handler") == 0) {
    raise(SIGTRAP);
    if (taken != SIGTRAP) return 4;
  }
  printf("%zu\n", sum);
  return 0;
}
