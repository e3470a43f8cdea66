// Threads asleep in system calls: none may see EINTR, and none may wake early.
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "hostile.h"

NOINLINE int nap(int kind) {
  const double begin = Now();
  const long ms = 30 + kind * 7;
  const struct timespec span = {0, ms * 1000000};
  struct timespec until;
  sigset_t set;
  static sem_t never;
  int fds[2];
  char byte;
  switch (kind) {
    case 0:
      CHECK(nanosleep(&span, NULL) == 0);
      break;
    case 1:
      CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL) == 0);
      break;
    case 2: {
      const int epoll = epoll_create1(0);
      struct epoll_event event;
      CHECK(epoll >= 0);
      CHECK(epoll_wait(epoll, &event, 1, (int)ms) == 0);
      close(epoll);
      break;
    }
    case 3:
      CHECK(poll(NULL, 0, (int)ms) == 0);
      break;
    case 4: {
      struct timeval timeout = {0, ms * 1000};
      CHECK(select(0, NULL, NULL, NULL, &timeout) == 0);
      break;
    }
    case 5:
      sigemptyset(&set);
      sigaddset(&set, SIGUSR2);
      CHECK(sigtimedwait(&set, NULL, &span) == -1 && errno == EAGAIN);
      break;
    case 6:
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_nsec += ms * 1000000;
      until.tv_sec += until.tv_nsec / 1000000000;
      until.tv_nsec %= 1000000000;
      CHECK(sem_timedwait(&never, &until) == -1 && errno == ETIMEDOUT);
      break;
    default: {
      CHECK(pipe(fds) == 0);
      struct pollfd wait = {fds[0], POLLIN, 0};
      CHECK(poll(&wait, 1, (int)ms) == 0);
      CHECK(write(fds[1], "x", 1) == 1 && read(fds[0], &byte, 1) == 1 && byte == 'x');
      close(fds[0]);
      close(fds[1]);
    }
  }
  // The clock that times out may be a tick behind.
  CHECK(Now() - begin >= 1e-3 * (double)ms - 1e-3);
  return kind;
}

static int pipe_ends[2];

// Waits for the one message at the end; EINTR would show.
static void* Reader(void* unused) {
  char text[8];
  for (ssize_t n; (n = read(pipe_ends[0], text, 8)) != 0;) CHECK(n == 8);
  return unused;
}

static void* Work(void* number) {
  while (!Over()) {
    const int kind = (int)((long)number % 8);
    CHECK(nap(kind) == kind);
    atomic_fetch_add(&calls, 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  Begin(argc, argv);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  CHECK(pipe(pipe_ends) == 0);
  pthread_t reader;
  CHECK(pthread_create(&reader, NULL, Reader, NULL) == 0);
  if (threads < 8) threads = 8;
  RunThreads(Work);
  CHECK(write(pipe_ends[1], "12345678", 8) == 8);
  close(pipe_ends[1]);
  CHECK(pthread_join(reader, NULL) == 0);
  Report("nap");
  return 0;
}
