// Four ways to sort: recursion that halves, that divides unevenly, and none.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kCount = 120 };

static void exchange(int* a, int* b) {
  int kept = *a;
  *a = *b;
  *b = kept;
}

static int partition(int* n, int low, int high) {
  int pivot = n[high], edge = low;
  for (int i = low; i < high; i++) {
    if (n[i] < pivot) exchange(&n[edge++], &n[i]);
  }
  exchange(&n[edge], &n[high]);
  return edge;
}

static void quick(int* n, int low, int high) {
  if (low >= high) return;
  int edge = partition(n, low, high);
  quick(n, low, edge - 1);
  quick(n, edge + 1, high);
}

static void merge(int* n, int half, int count, int* space) {
  int a = 0, b = half, to = 0;
  while (a < half && b < count) space[to++] = n[b] < n[a] ? n[b++] : n[a++];
  while (a < half) space[to++] = n[a++];
  memcpy(n, space, to * sizeof *n);
}

static void merge_sort(int* n, int count, int* space) {
  if (count < 2) return;
  merge_sort(n, count / 2, space);
  merge_sort(n + count / 2, count - count / 2, space);
  merge(n, count / 2, count, space);
}

static void sift(int* n, int at, int count) {
  for (int child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && n[child + 1] > n[child]) child++;
    if (n[at] >= n[child]) return;
    exchange(&n[at], &n[child]);
  }
}

static void heap_sort(int* n, int count) {
  for (int i = count / 2; i-- > 0;) sift(n, i, count);
  while (count > 1) {
    exchange(&n[0], &n[--count]);
    sift(n, 0, count);
  }
}

static void insert_sort(int* n, int count) {
  for (int i = 1; i < count; i++) {
    for (int k = i; k > 0 && n[k] < n[k - 1]; k--) exchange(&n[k], &n[k - 1]);
  }
}

static void fill(int* n) {
  unsigned seed = 1;
  for (int i = 0; i < kCount; i++) n[i] = (seed = seed * 1103515245 + 12345) >> 16 & 1023;
}

static int in_order(const int* n) {
  for (int i = 1; i < kCount; i++) {
    if (n[i] < n[i - 1]) return 0;
  }
  return 1;
}

int main(void) {
  int n[kCount], space[kCount], sorted = 0;
  fill(n);
  quick(n, 0, kCount - 1);
  sorted += in_order(n);
  fill(n);
  merge_sort(n, kCount, space);
  sorted += in_order(n);
  fill(n);
  heap_sort(n, kCount);
  sorted += in_order(n);
  fill(n);
  insert_sort(n, kCount / 4);
  insert_sort(n, kCount);
  sorted += in_order(n);
  printf("%d of 4 are sorted\n", sorted);
  return sorted != 4;
}
