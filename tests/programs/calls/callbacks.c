#include <stdlib.h>
static int order(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }
static int visit(int n) { return n & 1; }
int count(int (*f)(int), const int* n, int size) {
  int c = 0;
  while (size--) c += f(*n++);
  return c;
}
int main(void) {
  int n[64];
  for (int i = 0; i < 64; i++) n[i] = i * 37 % 64;
  qsort(n, 64, sizeof *n, order);
  return count(visit, n, 64) == 0;
}
