#include "os/perf_event.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <span>

#include "base/check.h"
#include "os/perf_refusal.h"

namespace stackreel::os {

namespace {

// True if the soft limit could be raised.
bool RaiseDescriptorLimit() {
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

Status Control(const Fd& fd, unsigned long request, void* argument, const char* what) {
  if (ioctl(fd.get(), request, argument) == 0) return {};
  return Fail(ErrnoError(errno, what));
}

}  // namespace

OpenAttempt TryPerfEventOpen(const perfdata::Attr& attr, int pid, int cpu, int group_fd,
                             uint64_t flags) {
  std::vector<uint8_t> bytes = perfdata::EncodeAttr(attr, kNativeEndian);
  const auto open = [&] {
    return static_cast<int>(syscall(SYS_perf_event_open, bytes.data(), pid, cpu, group_fd,
                                    flags | PERF_FLAG_FD_CLOEXEC));
  };
  int fd = open();
  if (fd < 0 && errno == EMFILE && RaiseDescriptorLimit()) fd = open();
  if (fd < 0) return {.fd = Fd(), .error = errno};
  return {.fd = Fd(fd), .error = 0};
}

Result<Fd> PerfEventOpen(const perfdata::Attr& attr, int pid, int cpu, int group_fd,
                         uint64_t flags) {
  OpenAttempt attempt = TryPerfEventOpen(attr, pid, cpu, group_fd, flags);
  if (attempt.fd.valid()) return std::move(attempt.fd);
  return Fail(ExplainOpenRefusal(GatherRefusal(attempt.error, attr, pid, cpu)));
}

Result<uint64_t> PerfEventId(const Fd& fd) {
  uint64_t id = 0;
  TRY(Control(fd, PERF_EVENT_IOC_ID, &id, "cannot ask for an event's id"));
  return id;
}

Status PerfEventEnable(const Fd& fd) {
  return Control(fd, PERF_EVENT_IOC_ENABLE, nullptr, "cannot enable an event");
}

Status PerfEventDisable(const Fd& fd) {
  return Control(fd, PERF_EVENT_IOC_DISABLE, nullptr, "cannot disable an event");
}

Status PerfEventSetOutput(const Fd& fd, const Fd& target) {
  // The argument is the descriptor itself, not a pointer to it.
  return Control(fd, PERF_EVENT_IOC_SET_OUTPUT,
                 reinterpret_cast<void*>(static_cast<uintptr_t>(target.get())),
                 "cannot share an event's ring");
}

Status PerfEventSetFilter(const Fd& fd, const std::string& filter) {
  return Control(fd, PERF_EVENT_IOC_SET_FILTER, const_cast<char*>(filter.c_str()),
                 "cannot set an event's filter");
}

uint64_t PerfEventReadLost(const Fd& fd, const perfdata::Attr& attr, uint64_t id) {
  if ((attr.read_format & perfdata::kReadLost) == 0) return 0;
  // The kernel lets no group be larger than can be read in 16 KB.
  std::array<uint64_t, 2048> values = {};
  const ssize_t n = read(fd.get(), values.data(), sizeof(values));
  if (n < static_cast<ssize_t>(2 * sizeof(uint64_t))) return 0;
  const std::span<const uint64_t> words(values.data(), static_cast<size_t>(n) / sizeof(uint64_t));
  // value, [enabled], [running], [id], lost
  if ((attr.read_format & perfdata::kReadGroup) == 0) return words.back();
  // events, [enabled], [running], then of each: value, id, lost
  constexpr uint64_t kTimes = perfdata::kReadTotalTimeEnabled | perfdata::kReadTotalTimeRunning;
  CHECK((attr.read_format & perfdata::kReadId) != 0);
  size_t at = 1 + static_cast<size_t>(std::popcount(attr.read_format & kTimes));
  for (; at + 3 <= words.size(); at += 3) {
    if (words[at + 1] == id) return words[at + 2];
  }
  return 0;
}

}  // namespace stackreel::os
