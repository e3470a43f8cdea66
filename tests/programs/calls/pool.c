#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int next;
static _Thread_local int done;
static int take(void) {
  pthread_mutex_lock(&mutex);
  int n = next++;
  pthread_mutex_unlock(&mutex);
  return n;
}
static int work(int n) { return ++done + n; }
static void* run(void* p) {
  for (int n; (n = take()) < 200;) work(n);
  return p;
}
int main(void) {
  pthread_t t[3];
  for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, run, 0);
  for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
  return 0;
}
