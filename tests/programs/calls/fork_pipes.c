// Children that work on parts and send results by pipes; one of them has a child of its own.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static long part(long from, long to) {
  long sum = 0;
  for (long i = from; i < to; i++) sum += i;
  return sum;
}

static long by_child(long from, long to, int level);

static long split(long from, long to, int level) {
  long middle = (from + to) / 2;
  if (level == 0) return part(from, to);
  return by_child(from, middle, level - 1) + part(middle, to);
}

static long by_child(long from, long to, int level) {
  int ends[2];
  long result = 0;
  if (pipe(ends) != 0) exit(1);
  pid_t child = fork();
  if (child == 0) {
    result = split(from, to, level);
    if (write(ends[1], &result, sizeof result) != sizeof result) _exit(1);
    _exit(0);
  }
  if (read(ends[0], &result, sizeof result) != sizeof result) exit(1);
  waitpid(child, 0, 0);
  close(ends[0]);
  close(ends[1]);
  return result;
}

int main(void) {
  long sum = split(0, 1000, 2) + by_child(1000, 1100, 0);
  printf("%ld\n", sum);
  return sum != 1099 * 550;
}
