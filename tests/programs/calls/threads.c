#include <pthread.h>
static int leaf(int n) { return n + 1; }
static void* run(void* p) {
  int s = 0;
  for (int i = 0; i < 200; i++) s = leaf(s);
  return p;
}
int main(void) {
  pthread_t t[4];
  for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, run, 0);
  for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
  return 0;
}
