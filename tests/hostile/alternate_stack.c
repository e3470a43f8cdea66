// A handler on a stack of its own calls traced functions, and every other time leaves by
// siglongjmp.
#include <setjmp.h>
#include <signal.h>

#include "hostile.h"

static _Thread_local sigjmp_buf out;
static _Thread_local volatile int round_number;

NOINLINE int handled(int x) {
  __asm__ volatile("");
  return x + 11;
}
NOINLINE int risky(int x) {
  raise(SIGUSR1);
  return x + 1;
}
static void Handler(int number) {
  (void)number;
  CHECK(handled(1) == 12);
  if (round_number % 2 == 1) siglongjmp(out, 1);
}

static void* Work(void* unused) {
  static _Thread_local char stack[64 << 10];
  const stack_t alternate = {stack, 0, sizeof stack};
  CHECK(sigaltstack(&alternate, NULL) == 0);
  unsigned long long count = 0;
  while (!Over()) {
    // The last round returns, so that no call is open at the end.
    for (round_number = 0; round_number < 101; ++round_number, ++count) {
      if (sigsetjmp(out, 1) == 0) {
        CHECK(risky(5) == 6);
        CHECK(round_number % 2 == 0);
      } else {
        CHECK(round_number % 2 == 1);
      }
    }
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  struct sigaction action = {0};
  action.sa_handler = Handler;
  action.sa_flags = SA_ONSTACK;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  RunThreads(Work);
  Report("risky");
  return 0;
}
