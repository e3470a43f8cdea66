// Two generators on stacks of their own, which main() takes turns with by swapcontext().
#include <stdio.h>
#include <ucontext.h>

struct generator {
  ucontext_t context, caller;
  long value, limit;
  int ended;
};

static struct generator numbers, squares;
static char stacks[2][65536];

static void yield(struct generator* g, long value) {
  g->value = value;
  swapcontext(&g->context, &g->caller);
}

static void count(struct generator* g, long from) {
  if (from > g->limit) return;
  yield(g, from);
  count(g, from + 1);
}

static void run_numbers(void) {
  count(&numbers, 1);
  numbers.ended = 1;
}

static long square(long n) { return n * n; }

static void run_squares(void) {
  for (long i = 1; i <= squares.limit; i++) yield(&squares, square(i));
  squares.ended = 1;
}

static void start(struct generator* g, char* stack, void (*run)(void), long limit) {
  getcontext(&g->context);
  g->context.uc_stack.ss_sp = stack;
  g->context.uc_stack.ss_size = sizeof stacks[0];
  g->context.uc_link = &g->caller;
  g->limit = limit;
  makecontext(&g->context, run, 0);
}

static int next(struct generator* g) {
  swapcontext(&g->caller, &g->context);
  return !g->ended;
}

int main(void) {
  long sum = 0;
  start(&numbers, stacks[0], run_numbers, 10);
  start(&squares, stacks[1], run_squares, 10);
  while (next(&numbers) && next(&squares)) sum += squares.value - numbers.value;
  printf("%ld\n", sum);
  return sum != 330;
}
