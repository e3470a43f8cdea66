// What runs before main() and after it: constructors, destructors, and what atexit() is told.
#include <stdio.h>
#include <stdlib.h>

static char log_of_all[32];
static int noted;

static void note(char c) { log_of_all[noted++] = c; }
__attribute__((constructor(201))) static void early(void) { note('a'); }
__attribute__((constructor(202))) static void later(void) { note('b'); }
static void third(void) { note('f'); }
static void second(void) {
  note('e');
  atexit(third);
}
static void first(int code, void* with) { note(code == 0 ? *(char*)with : '?'); }
__attribute__((destructor)) static void last(void) {
  note('g');
  puts(log_of_all);
}

static void leave(int depth) {
  if (depth > 0) leave(depth - 1);
  note('c');
  exit(0);
}

int main(void) {
  static char letter = 'd';
  atexit(second);
  on_exit(first, &letter);
  leave(6);
  return 1;
}
