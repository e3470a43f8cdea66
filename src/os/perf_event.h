// perf_event_open(2) and its ring buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "os/file.h"
#include "perfdata/attr.h"

namespace stackreel::os {

// Opens one event, close-on-exec. `pid` -1: every task (then `cpu` says where); `cpu` -1: any.
// `group_fd` -1: none. When descriptors run out, the soft limit is raised to the hard one first.
// Errors are those of ExplainOpenRefusal.
Result<Fd> PerfEventOpen(const perfdata::Attr& attr, int pid, int cpu, int group_fd,
                         uint64_t flags);
// The same, with the errno of a failure and nothing explained: for probing.
struct OpenAttempt {
  Fd fd;
  int error = 0;
};
OpenAttempt TryPerfEventOpen(const perfdata::Attr& attr, int pid, int cpu, int group_fd,
                             uint64_t flags);

// PERF_EVENT_IOC_ID.
Result<uint64_t> PerfEventId(const Fd& fd);
Status PerfEventEnable(const Fd& fd);
Status PerfEventDisable(const Fd& fd);
Status PerfEventSetOutput(const Fd& fd, const Fd& target);
Status PerfEventSetFilter(const Fd& fd, const std::string& filter);
// How many records the event of this id lost because its ring was full (read_format LOST, Linux
// 6.0); 0 where the kernel does not count them.
uint64_t PerfEventReadLost(const Fd& fd, const perfdata::Attr& attr, uint64_t id);

// Calls `consume` with each record of a ring's bytes between `tail` and `head`, which count bytes
// since the ring began; `data` is 2^n bytes. A record that wraps is put together in `joined`.
// Returns the bytes taken: head - tail, unless a record is nonsense (kDamaged) or consume fails.
Result<size_t> ConsumeRing(ByteView data, uint64_t tail, uint64_t head,
                           std::vector<uint8_t>& joined,
                           const std::function<Status(ByteView record)>& consume);

// The data ring of one event fd: 1 + 2^n pages. Not for use by several threads at once.
class PerfRing {
 public:
  // `data_pages` is a power of two. kPermission if that is more than this user may lock.
  static Result<std::unique_ptr<PerfRing>> Map(const Fd& fd, size_t data_pages);
  ~PerfRing();
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;

  // Calls `consume` with each whole record there is now, in one piece (a record that wraps is
  // copied together), and frees the space afterwards. Returns how many bytes were taken.
  Result<size_t> Drain(const std::function<Status(ByteView record)>& consume);
  [[nodiscard]] size_t capacity() const { return data_size_; }
  // Time conversion the kernel publishes: {shift, mult, zero}, if it does.
  struct TimeConversion {
    uint16_t shift = 0;
    uint32_t mult = 0;
    uint64_t zero = 0;
  };
  [[nodiscard]] bool ReadTimeConversion(TimeConversion& out) const;

 private:
  PerfRing() = default;
  void* base_ = nullptr;
  size_t size_ = 0;
  size_t data_offset_ = 0;
  size_t data_size_ = 0;
  std::vector<uint8_t> joined_;
};

}  // namespace stackreel::os
