// Shortest ways through a graph by a heap of what is to be looked at, and a search in depth.
#include <stdio.h>
#include <stdlib.h>

enum { kNodes = 25, kSide = 5, kFar = 1 << 20 };

struct step {
  int node, distance;
};

static struct step heap[kNodes * 4];
static int used;

static void raise_step(int at) {
  while (at > 0 && heap[(at - 1) / 2].distance > heap[at].distance) {
    struct step kept = heap[at];
    heap[at] = heap[(at - 1) / 2];
    heap[(at - 1) / 2] = kept;
    at = (at - 1) / 2;
  }
}

static void push(int node, int distance) {
  heap[used] = (struct step){node, distance};
  raise_step(used++);
}

static struct step pop(void) {
  struct step top = heap[0];
  heap[0] = heap[--used];
  for (int at = 0, child; (child = 2 * at + 1) < used; at = child) {
    if (child + 1 < used && heap[child + 1].distance < heap[child].distance) child++;
    if (heap[at].distance <= heap[child].distance) break;
    struct step kept = heap[at];
    heap[at] = heap[child];
    heap[child] = kept;
  }
  return top;
}

static int cost(int a, int b) { return 1 + (a * 7 + b * 3) % 9; }

static void neighbours(int node, void (*each)(int from, int to, void*), void* with) {
  if (node % kSide + 1 < kSide) each(node, node + 1, with);
  if (node % kSide > 0) each(node, node - 1, with);
  if (node + kSide < kNodes) each(node, node + kSide, with);
  if (node - kSide >= 0) each(node, node - kSide, with);
}

static void relax(int from, int to, void* with) {
  int *distances = with, distance = distances[from] + cost(from, to);
  if (distance >= distances[to]) return;
  distances[to] = distance;
  push(to, distance);
}

static void reach(int from, int to, void* with) {
  (void)from;
  char* seen = with;
  if (seen[to]) return;
  seen[to] = 1;
  neighbours(to, reach, seen);
}

int main(void) {
  int distances[kNodes], reached = 0;
  char seen[kNodes] = {0};
  for (int i = 0; i < kNodes; i++) distances[i] = i == 0 ? 0 : kFar;
  push(0, 0);
  while (used > 0) {
    struct step next = pop();
    if (next.distance == distances[next.node]) neighbours(next.node, relax, distances);
  }
  reach(0, 0, seen);
  for (int i = 0; i < kNodes; i++) reached += seen[i];
  printf("%d reached, the last by %d\n", reached, distances[kNodes - 1]);
  for (int i = 0; i + 1 < kNodes; i++) {
    if (i % kSide + 1 < kSide && distances[i + 1] > distances[i] + cost(i, i + 1)) return 1;
  }
  return reached != kNodes;
}
