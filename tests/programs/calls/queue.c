// Producers and consumers at a queue, with condition variables.
#include <pthread.h>
#include <stdio.h>

enum { kRoom = 4, kItems = 40, kPairs = 2 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int items[kRoom], used;

static void put(int item) {
  pthread_mutex_lock(&mutex);
  while (used == kRoom) pthread_cond_wait(&changed, &mutex);
  items[used++] = item;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}

static int take(void) {
  pthread_mutex_lock(&mutex);
  while (used == 0) pthread_cond_wait(&changed, &mutex);
  int item = items[--used];
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  return item;
}

static void* produce(void* arg) {
  for (int i = 1; i <= kItems; i++) put(i);
  return arg;
}

static void* consume(void* sum) {
  for (int i = 0; i < kItems; i++) *(long*)sum += take();
  return sum;
}

int main(void) {
  pthread_t producers[kPairs], consumers[kPairs];
  long sums[kPairs] = {0}, sum = 0;
  for (int i = 0; i < kPairs; i++) {
    pthread_create(&producers[i], 0, produce, 0);
    pthread_create(&consumers[i], 0, consume, &sums[i]);
  }
  for (int i = 0; i < kPairs; i++) {
    pthread_join(producers[i], 0);
    pthread_join(consumers[i], 0);
    sum += sums[i];
  }
  printf("%ld\n", sum);
  return sum != kPairs * kItems * (kItems + 1) / 2;
}
