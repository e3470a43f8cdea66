// Waits as its argument says, with time-outs that the kernel would begin anew whenever the thread is
// stopped:
//   traps     beside functions that only a trap can be put at
//   deferred  while another thread is inside the first bytes of `start_child`, and cannot be moved from
//             there as it waits for its child; says so once it is there
// Its last line is how many waits came to their end.
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

__asm__(
    ".text\n.p2align 4\n"
    ".globl short_one\n.type short_one, @function\nshort_one:\n mov %edi, %eax\n ret\n"
    ".size short_one, . - short_one\n"
    ".globl short_two\n.type short_two, @function\nshort_two:\n lea 5(%rdi), %eax\n ret\n"
    ".size short_two, . - short_two\n"
    // vfork() by itself, and the child, which shares its stack, waits for a signal and ends.
    ".globl start_child\n.type start_child, @function\nstart_child:\n"
    " push $58\n pop %rax\n syscall\n"
    " test %eax, %eax\n jne 1f\n"
    " mov $34, %eax\n syscall\n"
    " xor %edi, %edi\n mov $60, %eax\n syscall\n"
    "1: ret\n"
    ".size start_child, . - start_child\n");
int short_one(int), short_two(int), start_child(void);

static void* be_a_parent(void* unused) {
  (void)unused;
  start_child();
  return NULL;
}

static int wait_for(int milliseconds) {
  struct epoll_event event;
  const int epoll = epoll_create1(0);
  const int events = epoll_wait(epoll, &event, 1, milliseconds);
  close(epoll);
  return events;
}

int main(int argc, char** argv) {
  int waits = 0, sum = 0;
  if (argc == 2 && strcmp(argv[1], "traps") == 0) {
    for (; waits < 2; ++waits) {
      sum += short_one(1) + short_two(2);
      if (wait_for(1500) != 0) return 1;
    }
  } else if (argc == 2) {
    pthread_t parent;
    if (pthread_create(&parent, NULL, be_a_parent, NULL) != 0) return 1;
    usleep(200000);
    puts("there");
    fflush(stdout);
    for (; waits < 10; ++waits) {
      if (wait_for(250) != 0) return 1;
    }
  }
  printf("%d waits\n", waits);
  return sum > 100;
}
