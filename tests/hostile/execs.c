// Becomes itself anew until the time is over; says at the end how often.
#include "hostile.h"

// Of more bytes than a jump: it may stand at the end of the code, with nothing behind it.
NOINLINE int leaf(int x) {
  __asm__ volatile("nop; nop");
  return x + 5;
}

int main(int argc, char** argv) {
  const char* const until = getenv("HOSTILE_UNTIL");
  const char* const round = getenv("HOSTILE_ROUND");
  Begin(argc, argv);
  if (until != NULL) deadline = atof(until);
  for (int i = 0; i < 1000; ++i) CHECK(leaf(i) == i + 5);
  const long rounds = round == NULL ? 1 : atol(round) + 1;
  if (Over()) {
    printf("calls leaf %ld\n", rounds * 1000);
    return 0;
  }
  char text[64];
  snprintf(text, sizeof text, "%.9f", deadline);
  setenv("HOSTILE_UNTIL", text, 1);
  snprintf(text, sizeof text, "%ld", rounds);
  setenv("HOSTILE_ROUND", text, 1);
  usleep(20000);
  execv("/proc/self/exe", argv);
  CHECK(0);
}
