// Signal handlers that nest, on a stack of their own, while signals are held back and let go.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t outer_seen, inner_seen, sum;

static void add(int n) { sum += n; }

static void inner(int number) {
  (void)number;
  inner_seen++;
  add(1);
}

static void outer(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  outer_seen++;
  add(info->si_value.sival_int);
  raise(SIGUSR2);
  add(100);
}

static void held_back(int n) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, &old);
  raise(SIGUSR2);
  add(n);
  sigprocmask(SIG_SETMASK, &old, 0);
}

int main(void) {
  static char space[65536];
  stack_t stack = {.ss_sp = space, .ss_size = sizeof space};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  sigaltstack(&stack, 0);
  action.sa_sigaction = outer;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGRTMIN, &action, 0);
  action.sa_flags = 0;
  action.sa_handler = inner;
  sigaction(SIGUSR2, &action, 0);
  for (int i = 0; i < 8; i++) {
    sigval_t value = {.sival_int = i};
    sigqueue(getpid(), SIGRTMIN, value);
    held_back(1000);
  }
  printf("%d %d %d\n", (int)outer_seen, (int)inner_seen, (int)sum);
  return outer_seen != 8 || inner_seen != 16 || sum != 28 + 16 + 800 + 8000;
}
