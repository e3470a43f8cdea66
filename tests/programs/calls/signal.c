#include <signal.h>
static volatile int seen;
static int note(int n) { return seen += n; }
static void take(int signal) { note(signal); }
int send(int n) {
  raise(SIGUSR1);
  return n;
}
int main(void) {
  signal(SIGUSR1, take);
  for (int i = 0; i < 20; i++) send(i);
  return seen == 0;
}
