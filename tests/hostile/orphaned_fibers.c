// Fibers that are suspended in the middle of calls when the thread that began them ends. Only when
// SECONDS are over, and whoever traced this may have left, do other threads go on with them: no
// return address on their stacks may lead to anything that is gone.
#include <ucontext.h>

#include "hostile.h"

enum { kFibers = 64, kStack = 64 << 10 };

struct Fiber {
  ucontext_t context, back;
  int number;
};
static struct Fiber fibers[kFibers];

NOINLINE long inner(struct Fiber* fiber, long depth) {
  __asm__ volatile("");
  if (depth > 0) return inner(fiber, depth - 1) + 1;
  CHECK(swapcontext(&fiber->context, &fiber->back) == 0);
  return fiber->number;
}
NOINLINE long outer(struct Fiber* fiber) { return inner(fiber, fiber->number % 9) + 100; }

static void Run(unsigned low, unsigned high) {
  struct Fiber* const fiber = (struct Fiber*)((uintptr_t)high << 32 | low);
  while (1) CHECK(outer(fiber) == 100 + fiber->number + fiber->number % 9);
}

NOINLINE void resume(struct Fiber* fiber) {
  CHECK(swapcontext(&fiber->back, &fiber->context) == 0);
}

// Each thread has its share of them.
static void* Resume(void* number) {
  const long first = (long)number;
  for (long i = first; i < kFibers; i += threads, atomic_fetch_add(&calls, 1)) resume(&fibers[i]);
  return NULL;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  for (int i = 0; i < kFibers; ++i) {
    struct Fiber* const fiber = &fibers[i];
    fiber->number = i;
    CHECK(getcontext(&fiber->context) == 0);
    fiber->context.uc_stack.ss_sp = malloc(kStack);
    fiber->context.uc_stack.ss_size = kStack;
    makecontext(&fiber->context, (void (*)(void))Run, 2, (unsigned)(uintptr_t)fiber,
                (unsigned)((uintptr_t)fiber >> 32));
  }
  // The last of these threads have ended well before the end.
  while (deadline - Now() > 0.3) {
    RunThreads(Resume);
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  while (!Over()) nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  for (int i = 0; i < 3; ++i) RunThreads(Resume);
  Report("resume");
  return 0;
}
