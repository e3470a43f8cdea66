// Backtracking: recursion that is left at any depth.
#include <stdio.h>
#include <stdlib.h>

enum { N = 6 };

static int column[N];

static int attacked(int row, int at) {
  for (int i = 0; i < row; i++) {
    if (column[i] == at || abs(column[i] - at) == row - i) return 1;
  }
  return 0;
}

static int place(int row) {
  if (row == N) return 1;
  int found = 0;
  for (int at = 0; at < N; at++) {
    if (attacked(row, at)) continue;
    column[row] = at;
    found += place(row + 1);
  }
  return found;
}

// Knows of one way only, and returns from all levels at once when it is found.
static int first(int row) {
  if (row == N) return 1;
  for (int at = 0; at < N; at++) {
    if (attacked(row, at)) continue;
    column[row] = at;
    if (first(row + 1)) return 1;
  }
  return 0;
}

static void hanoi(int n, int from, int to, long* moves) {
  if (n == 0) return;
  hanoi(n - 1, from, 6 - from - to, moves);
  ++*moves;
  hanoi(n - 1, 6 - from - to, to, moves);
}

int main(void) {
  long moves = 0;
  int found = place(0), any = first(0);
  hanoi(6, 1, 3, &moves);
  printf("%d ways, %d, %ld moves\n", found, any, moves);
  return found != 4 || !any || moves != 63;
}
