// Makes so many calls of step() and says so, waits to be told to go on, and makes as many again. Then
// it executes what further arguments name.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE int step(int x) {
  __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop");
  return x + 1;
}

NOINLINE void make_calls(int calls) {
  for (int i = 0; i < calls; ++i) step(i);
}

int main(int argc, char** argv) {
  const int calls = argc > 1 ? atoi(argv[1]) : 1;
  make_calls(calls);
  (void)!write(1, "ready\n", 6);
  close(open("/dev/null", O_RDONLY));
  char byte;
  (void)!read(0, &byte, 1);
  make_calls(calls);
  if (argc > 2) execv(argv[2], argv + 2);
  return 0;
}
