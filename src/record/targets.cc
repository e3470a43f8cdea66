#include "record/targets.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "os/proc.h"

namespace stackreel::record {
namespace {

bool IsRunning(uint32_t pid, uint32_t tid) {
  return syscall(SYS_tgkill, pid, tid, 0) == 0 || errno == EPERM;
}

}  // namespace

os::Fd OpenPidFd(uint32_t pid) {
  return os::Fd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(pid), 0)));
}

Result<Targets> Targets::Find(const RecordOptions& options) {
  Targets targets;
  for (const uint32_t pid : options.pids) {
    const std::vector<uint32_t> tids = os::ListThreads(pid);
    if (tids.empty()) return Fail(ErrorKind::kNotFound, fmt::format("no process {}", pid));
    for (const uint32_t tid : tids) targets.tasks_.push_back({pid, tid});
    targets.pids_.push_back(pid);
    targets.watched_.push_back({.task = {pid, pid}, .pidfd = OpenPidFd(pid)});
  }
  for (const uint32_t tid : options.tids) {
    const auto status = os::ReadProcStatus(tid, tid);
    if (!status) return Fail(ErrorKind::kNotFound, fmt::format("no thread {}", tid));
    targets.tasks_.push_back({status->tgid, tid});
    if (std::ranges::find(targets.pids_, status->tgid) == targets.pids_.end()) {
      targets.pids_.push_back(status->tgid);
    }
    targets.watched_.push_back({.task = {status->tgid, tid}, .pidfd = os::Fd()});
  }
  return targets;
}

bool Targets::AllGone() {
  std::erase_if(watched_, [](const Watched& watched) {
    if (!watched.pidfd.valid()) return !IsRunning(watched.task.pid, watched.task.tid);
    struct pollfd poll_fd = {.fd = watched.pidfd.get(), .events = POLLIN, .revents = 0};
    return poll(&poll_fd, 1, 0) == 1;
  });
  return watched_.empty();
}

}  // namespace stackreel::record
