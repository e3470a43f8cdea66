#include <sys/wait.h>
#include <unistd.h>
int work(int n) { return n * 3; }
int child(void) { return work(1) + work(2) == 0; }
int main(void) {
  if (fork() == 0) _exit(child());
  wait(0);
  return work(3) == 1;
}
