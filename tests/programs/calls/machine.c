// A stack machine that goes from instruction to instruction by computed goto.
#include <stdio.h>

enum op { PUSH, ADD, MULTIPLY, SUBTRACT, COPY, JUMP_IF, CALL, HALT };
enum { kRounds = 12 };

static long stack[32];
static int top;

static void push(long value) { stack[top++] = value; }
static long pop(void) { return stack[--top]; }
static long cube(long n) { return n * n * n; }
static long negate(long n) { return -n; }
static long (*const natives[])(long) = {cube, negate};

static long execute(const int* code) {
  static const void* const labels[] = {&&push, &&add,  &&multiply, &&subtract,
                                       &&copy, &&jump, &&call,     &&halt};
  const int* at = code;
  long a;
#define NEXT goto* labels[*at++]
  NEXT;
push:
  push(*at++);
  NEXT;
add:
  a = pop();
  push(pop() + a);
  NEXT;
multiply:
  a = pop();
  push(pop() * a);
  NEXT;
subtract:
  a = pop();
  push(pop() - a);
  NEXT;
copy:
  push(stack[top - *at++]);
  NEXT;
jump:
  a = *at++;
  if (pop() != 0) at = code + a;
  NEXT;
call:
  push(natives[*at++](pop()));
  NEXT;
halt:
  return pop();
}

int main(void) {
  // The sum of the cubes of 1 to kRounds.
  const int code[] = {PUSH, 0, PUSH, kRounds, COPY, 1, CALL,     0,    COPY, 3,       ADD, CALL, 1,
                      CALL, 1, COPY, 2,       PUSH, 1, SUBTRACT, COPY, 1,    JUMP_IF, 4,   HALT};
  // Each round leaves its sum and its counter on the stack; the last sum lies below the counter.
  const long counter = execute(code), sum = pop();
  top = 0;
  const int squares[] = {PUSH, 7, COPY, 1, MULTIPLY, CALL, 1, HALT};
  printf("%ld %ld %ld\n", counter, sum, execute(squares));
  return counter != 0 || sum != 6084;
}
