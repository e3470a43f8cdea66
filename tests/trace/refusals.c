// Is what its argument names, says so, and waits to be killed. Or runs a command without perf events.
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE int parse_line(int x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 1;
}
NOINLINE int parse_file(int x) { return parse_line(x) * parse_line(x + 1); }

static void answer_at(int number, unsigned answer) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof steps / sizeof steps[0], steps};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(77);
}

static void kill_at(int number) { answer_at(number, SECCOMP_RET_KILL_PROCESS); }

// As somebody who hooks functions does.
static void change_code(void) {
  unsigned char* const code = (unsigned char*)parse_line;
  unsigned char* const page = (unsigned char*)((unsigned long)code & ~4095UL);
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) _exit(77);
  code[0] = 0xf2;  // a prefix of no meaning here
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "without_events") == 0) {
    answer_at(SYS_perf_event_open, SECCOMP_RET_ERRNO | EACCES);
    execv(argv[2], argv + 2);
    return 126;
  }
  const int strict = strcmp(what, "strict") == 0;
  if (strcmp(what, "killing_filter") == 0) kill_at(SYS_memfd_create);
  if (strcmp(what, "harmless_filter") == 0) kill_at(SYS_ptrace);
  if (strcmp(what, "changed_code") == 0) change_code();
  parse_file(1);
  if (strict && prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(77);
  (void)!write(1, "ready\n", 6);
  char byte;
  while (read(0, &byte, 1) == 1) continue;
  return 0;
}
