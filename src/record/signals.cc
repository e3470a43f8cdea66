#include "record/signals.h"

#include <unistd.h>

namespace stackreel::record {

Signals::Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    sigaddset(&set, signal);
  }
  // Who starts us by nohup(1) wants the recording to go on when the terminal goes.
  if (sigismember(&inherited_.ignored, SIGHUP) == 1) sigdelset(&set, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  fd_ = os::Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  // A closed pipe, a file grown to its limit are errors of writing. A child's end is kept for
  // waitpid(2) only where SIGCHLD is not ignored.
  for (const int signal : {SIGPIPE, SIGXFSZ}) old_[signal] = ::signal(signal, SIG_IGN);
  old_[SIGCHLD] = ::signal(SIGCHLD, SIG_DFL);
}

Signals::~Signals() {
  // What came in the meantime was answered by the end of the recording.
  struct signalfd_siginfo info = {};
  while (read(fd_.get(), &info, sizeof(info)) == sizeof(info)) {
  }
  for (const auto& [signal, handler] : old_) ::signal(signal, handler);
  pthread_sigmask(SIG_SETMASK, &inherited_.blocked, nullptr);
}

std::optional<signalfd_siginfo> Signals::Next() {
  struct signalfd_siginfo info = {};
  if (read(fd_.get(), &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return info;
}

}  // namespace stackreel::record
