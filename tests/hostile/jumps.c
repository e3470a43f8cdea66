// Frames that are left without a return: longjmp, pthread_exit, pthread_cancel.
#include <setjmp.h>

#include "hostile.h"

static _Thread_local jmp_buf out;

NOINLINE int deepest(int depth, int how) {
  __asm__ volatile("");
  if (how == 1) longjmp(out, depth + 100);
  if (how == 2) pthread_exit((void*)(long)(depth + 200));
  if (how == 3) {
    while (1) {
      pthread_testcancel();
      usleep(100);
    }
  }
  return depth;
}
NOINLINE int deeper(int depth, int how) {
  if (depth == 0) return deepest(7, how);
  return deeper(depth - 1, how) + 1;
}

static void Cleanup(void* flag) { *(int*)flag = deeper(2, 0); }

static void* Ends(void* how) {
  int cleaned = 0;
  void* result = NULL;
  pthread_cleanup_push(Cleanup, &cleaned);
  result = (void*)(long)deeper(5, (int)(long)how);
  pthread_cleanup_pop(1);
  CHECK(cleaned == 9);
  return result;
}

static void* Work(void* unused) {
  volatile unsigned long long count = 0;
  while (!Over()) {
    for (volatile int i = 0; i < 50; i = i + 1) {
      const int jumped = setjmp(out);
      if (jumped == 0) {
        deeper(i % 10, 1);
        CHECK(0);
      }
      CHECK(jumped == 107);
      CHECK(deeper(3, 0) == 10);
      count = count + 2;
    }
    pthread_t thread;
    void* result = NULL;
    CHECK(pthread_create(&thread, NULL, Ends, (void*)2L) == 0);
    CHECK(pthread_join(thread, &result) == 0 && (long)result == 207);
    CHECK(pthread_create(&thread, NULL, Ends, (void*)3L) == 0);
    usleep(500);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    count = count + 4;  // each of the two, and its cleanup
  }
  atomic_fetch_add(&calls, count);
  return unused;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  RunThreads(Work);
  Report("deepest");
  return 0;
}
