#include "os/child_process.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace stackreel::os {

namespace {

bool IsRunnableFile(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

struct Pipe {
  Fd read_end, write_end;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  return Pipe{.read_end = Fd(ends[0]), .write_end = Fd(ends[1])};
}

// A socket: writing to a child that was killed meanwhile is an error there, not a SIGPIPE.
Result<Pipe> MakeSilentPipe() {
  std::array<int, 2> ends = {};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Fail(ErrnoError(errno, "cannot make a pair of sockets"));
  }
  return Pipe{.read_end = Fd(ends[0]), .write_end = Fd(ends[1])};
}

// In the child, between fork and exec: only what is async-signal-safe.
[[noreturn]] void RunChild(int go, int exec_error, char* const* argv, const SignalState& signals) {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    action.sa_handler = sigismember(&signals.ignored, signal) == 1 ? SIG_IGN : SIG_DFL;
    sigaction(signal, &action, nullptr);  // of SIGKILL and SIGSTOP it fails, and need not be done
  }
  sigprocmask(SIG_SETMASK, &signals.blocked, nullptr);
  char byte = 0;
  ssize_t n = 0;
  do {
    n = read(go, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n != 1) _exit(127);
  execvp(argv[0], argv);
  const int error = errno;
  (void)!write(exec_error, &error, sizeof(error));
  _exit(error == ENOENT ? 127 : 126);
}

}  // namespace

Result<std::string> FindCommand(const std::string& name) {
  const auto not_found = [&name] {
    return Fail(ErrorKind::kNotFound, fmt::format("command not found: {}", name));
  };
  const auto not_runnable = [](const std::string& path) {
    return Fail(ErrorKind::kPermission,
                fmt::format("cannot run {}: it is not an executable file", path));
  };
  if (name.empty()) return not_found();
  if (name.find('/') != std::string::npos) {
    if (IsRunnableFile(name)) return name;
    if (access(name.c_str(), F_OK) == 0) return not_runnable(name);
    return not_found();
  }
  const char* path = getenv("PATH");
  std::string list = path != nullptr ? path : "/bin:/usr/bin";
  std::string refused;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    const std::string folder = list.substr(at, end - at);
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (IsRunnableFile(candidate)) return candidate;
    struct stat info = {};
    if (stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode)) refused = candidate;
    at = end + 1;
  }
  if (!refused.empty()) return not_runnable(refused);
  return not_found();
}

int ExitCodeOf(int wait_status) {
  if (WIFSIGNALED(wait_status)) return 128 + WTERMSIG(wait_status);
  return WEXITSTATUS(wait_status);
}

SignalState SignalState::Current() {
  SignalState state;
  pthread_sigmask(SIG_SETMASK, nullptr, &state.blocked);
  sigemptyset(&state.ignored);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
      sigaddset(&state.ignored, signal);
    }
  }
  return state;
}

bool CommandGotItToo(const signalfd_siginfo& signal) {
  return signal.ssi_code == SI_KERNEL && signal.ssi_signo != SIGHUP;
}

Result<std::unique_ptr<ChildProcess>> ChildProcess::Prepare(const std::vector<std::string>& command,
                                                            bool stdout_to_stderr,
                                                            const SignalState& signals) {
  TRY(FindCommand(command.empty() ? "" : command[0]));
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  TRY_ASSIGN(Pipe go, MakeSilentPipe());
  TRY_ASSIGN(Pipe exec_error, MakePipe());
  const pid_t pid = fork();
  if (pid < 0) return Fail(ErrnoError(errno, "cannot start a process"));
  if (pid == 0) {
    close(go.write_end.Release());  // else the end of this process would not be seen
    if (stdout_to_stderr) dup2(STDERR_FILENO, STDOUT_FILENO);
    RunChild(go.read_end.get(), exec_error.write_end.get(), argv.data(), signals);
  }
  std::unique_ptr<ChildProcess> child(
      new ChildProcess(pid, std::move(go.write_end), std::move(exec_error.read_end)));
  child->command_ = command[0];
  return child;
}

ChildProcess::ChildProcess(int pid, Fd go, Fd exec_error)
    : pid_(pid), go_(std::move(go)), exec_error_(std::move(exec_error)) {}

ChildProcess::~ChildProcess() {
  if (!go_.valid() || wait_status_) return;
  go_ = Fd();  // end of file: it exits
  Wait(/*block=*/true);
}

Status ChildProcess::Start() {
  const char byte = 1;
  if (send(go_.get(), &byte, 1, MSG_NOSIGNAL) != 1) {
    if (errno == EPIPE || errno == ECONNRESET) {
      return Fail(ErrorKind::kNotFound, fmt::format("{} was killed before it began", command_));
    }
    return Fail(ErrnoError(errno, "cannot start", command_));
  }
  go_ = Fd();
  int error = 0;
  ssize_t n = 0;
  do {
    n = read(exec_error_.get(), &error, sizeof(error));  // ends when exec closes the pipe
  } while (n < 0 && errno == EINTR);
  exec_error_ = Fd();
  if (n != sizeof(error)) return {};
  Wait(/*block=*/true);
  return Fail(ErrnoError(error, "cannot run", command_));
}

std::optional<int> ChildProcess::Wait(bool block) {
  while (!wait_status_) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, block ? 0 : WNOHANG);
    if (ended == pid_ && (WIFEXITED(status) || WIFSIGNALED(status))) {
      wait_status_ = status;
    } else if (ended == 0 || (ended < 0 && errno != EINTR)) {
      break;
    }
  }
  if (!wait_status_) return std::nullopt;
  return ExitCodeOf(*wait_status_);
}

void ChildProcess::Signal(int signal) const {
  if (!wait_status_) kill(pid_, signal);
}

}  // namespace stackreel::os
