// Signals interrupt threads anywhere, in prologues too, and their handlers call traced functions.
#include <signal.h>

#include "hostile.h"

NOINLINE long handled(long x) {
  __asm__ volatile("");
  return x * 5 + 2;
}
// A long prologue: six pushes.
NOINLINE long victim(long a, long b, long c, long d) {
  long v[4] = {a, b, c, d};
  __asm__ volatile("" : "+m"(v)::"rbx", "r12", "r13", "r14", "r15");
  return v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3];
}

static atomic_ullong signals;
static void Handler(int number) {
  (void)number;
  const int saved = errno;
  CHECK(handled(7) == 37);
  atomic_fetch_add(&signals, 1);
  errno = saved;
}

static atomic_int running;
static pthread_t victims[4096];

static void* Work(void* number) {
  unsigned long long count = 0;
  victims[(long)number] = pthread_self();
  atomic_fetch_add(&running, 1);
  while (!Over()) {
    for (long i = 0; i < 1000; ++i) CHECK(victim(i, 1, i, 2) == i + 2 + 3 * i + 8);
    count += 1000;
  }
  atomic_fetch_sub(&running, 1);
  atomic_fetch_add(&calls, count);
  while (atomic_load(&running) > 0) usleep(1000);  // nobody is signalled that has ended
  return NULL;
}

static void* Sender(void* unused) {
  while (atomic_load(&running) < threads && !Over()) usleep(1000);
  for (int i = 0; !Over(); i = (i + 1) % threads) {
    pthread_kill(victims[i], SIGUSR1);
    usleep(50);
  }
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  struct sigaction action = {0};
  action.sa_handler = Handler;
  action.sa_flags = SA_RESTART;
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  pthread_t sender;
  CHECK(pthread_create(&sender, NULL, Sender, NULL) == 0);
  RunThreads(Work);
  CHECK(pthread_join(sender, NULL) == 0);
  CHECK(atomic_load(&signals) > 0);
  Report("victim");
  return 0;
}
