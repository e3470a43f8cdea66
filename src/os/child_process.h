// A command that waits to be started, so that events can be opened on it first.
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "os/file.h"

namespace stackreel::os {

// Where execvp(3) will find `name`. kNotFound, or kPermission if it is there but cannot be run.
Result<std::string> FindCommand(const std::string& name);

// 128 + signal, or the code it ended with, from a status of waitpid(2).
int ExitCodeOf(int wait_status);

// What exec(2) hands on of signals: which are blocked and which are ignored.
struct SignalState {
  sigset_t blocked = {};
  sigset_t ignored = {};
  // This thread's and this process's, now.
  static SignalState Current();
};

// Whether a signal that came to us (signalfd(2)) was the kernel's to a command of ours as well:
// keys of the terminal (n_tty.c, isig) go to all of the foreground group. A hang-up does not: it
// goes to the leader of the session alone, and to the group only once that has ended (tty_io.c,
// __tty_hangup; tty_jobctrl.c, disassociate_ctty). The leader are we under `ssh -t`, `xterm -e` or
// `docker run -it`.
bool CommandGotItToo(const signalfd_siginfo& signal);

class ChildProcess {
 public:
  // Forks; the child waits for Start(), and ends if this process does first. Its signals are as
  // `signals` says: by nohup(1) and by shells a command is told to ignore some. With
  // `stdout_to_stderr` its standard output is our standard error, since ours is taken. SIGCHLD must
  // not be ignored here, or the kernel keeps the exit code. Must be called before this process has
  // other threads that hold locks.
  static Result<std::unique_ptr<ChildProcess>> Prepare(
      const std::vector<std::string>& command, bool stdout_to_stderr = false,
      const SignalState& signals = SignalState::Current());
  // Ends a child that was not started.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  [[nodiscard]] uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  // Lets it execute the command. An error is exec's: kNotFound, kPermission, …
  Status Start();
  // The exit code, if it has ended; `block` waits for that.
  std::optional<int> Wait(bool block);
  // As waitpid(2) gives it, if Wait has seen its end: a code of 137 is not the signal 9.
  [[nodiscard]] std::optional<int> wait_status() const { return wait_status_; }
  // Does nothing if it has ended.
  void Signal(int signal) const;

 private:
  ChildProcess(int pid, Fd go, Fd exec_error);
  int pid_;
  Fd go_;          // a byte written here starts it
  Fd exec_error_;  // errno of a failed exec comes out of here
  std::string command_;
  std::optional<int> wait_status_;
};

}  // namespace stackreel::os
