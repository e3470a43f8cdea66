/* Turns the signal-mask calls of a program into nothing; for measuring perf without them. */
#include <signal.h>
int pthread_sigmask(int how, const sigset_t* set, sigset_t* old) {
  (void)how;
  (void)set;
  (void)old;
  return 0;
}
int sigprocmask(int how, const sigset_t* set, sigset_t* old) {
  (void)how;
  (void)set;
  (void)old;
  return 0;
}
