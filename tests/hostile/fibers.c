// Stacks that are switched by swapcontext, each fiber in turn by every thread: a call begins in one
// thread and returns in another.
#include <ucontext.h>

#include "hostile.h"

enum { kFibers = 16, kStack = 64 << 10 };

struct Fiber {
  ucontext_t context, back;
  pthread_mutex_t lock;
  long rounds;
  int number;
};
static struct Fiber fibers[kFibers];

NOINLINE long inner(struct Fiber* fiber, long depth) {
  __asm__ volatile("");
  if (depth > 0) return inner(fiber, depth - 1) + 1;
  CHECK(swapcontext(&fiber->context, &fiber->back) == 0);
  return fiber->number;
}
NOINLINE long outer(struct Fiber* fiber) { return inner(fiber, fiber->rounds % 5) + 100; }

static void Run(unsigned low, unsigned high) {
  struct Fiber* const fiber = (struct Fiber*)((uintptr_t)high << 32 | low);
  while (1) {
    CHECK(outer(fiber) == 100 + fiber->number + fiber->rounds % 5);
    ++fiber->rounds;
  }
}

NOINLINE void resume(struct Fiber* fiber) {
  CHECK(swapcontext(&fiber->back, &fiber->context) == 0);
}

static void* Work(void* number) {
  unsigned long long count = 0;
  for (long i = (long)number; !Over(); ++i) {
    struct Fiber* const fiber = &fibers[i % kFibers];
    if (pthread_mutex_trylock(&fiber->lock) != 0) continue;
    for (int k = 0; k < 3; ++k, ++count) resume(fiber);
    pthread_mutex_unlock(&fiber->lock);
  }
  atomic_fetch_add(&calls, count);
  return NULL;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  for (int i = 0; i < kFibers; ++i) {
    struct Fiber* const fiber = &fibers[i];
    fiber->number = i;
    pthread_mutex_init(&fiber->lock, NULL);
    CHECK(getcontext(&fiber->context) == 0);
    fiber->context.uc_stack.ss_sp = malloc(kStack);
    fiber->context.uc_stack.ss_size = kStack;
    makecontext(&fiber->context, (void (*)(void))Run, 2, (unsigned)(uintptr_t)fiber,
                (unsigned)((uintptr_t)fiber >> 32));
  }
  RunThreads(Work);
  Report("resume");
  return 0;
}
