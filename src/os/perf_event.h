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

// Opens one event; errors carry cause and cure (see recording design). `group_fd` -1: none.
Result<Fd> PerfEventOpen(const perfdata::Attr& attr, int pid, int cpu, int group_fd,
                         uint64_t flags);
// PERF_EVENT_IOC_ID.
Result<uint64_t> PerfEventId(const Fd& fd);
Status PerfEventEnable(const Fd& fd);
Status PerfEventDisable(const Fd& fd);
Status PerfEventSetOutput(const Fd& fd, const Fd& target);
Status PerfEventSetFilter(const Fd& fd, const std::string& filter);

// The data ring of one event fd: 1 + 2^n pages.
class PerfRing {
 public:
  static Result<std::unique_ptr<PerfRing>> Map(const Fd& fd, size_t data_pages);
  ~PerfRing();
  PerfRing(const PerfRing&) = delete;
  PerfRing& operator=(const PerfRing&) = delete;

  // Calls `consume` with each whole record there is now, in one piece (a record that wraps is
  // copied together), and frees the space afterwards. Returns how many bytes were taken.
  Result<size_t> Drain(const std::function<Status(ByteView record)>& consume);
  [[nodiscard]] size_t capacity() const;
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
