#include <errno.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "os/perf_event.h"
#include "os/proc.h"
#include "perfdata/record_size.h"

namespace stackreel::os {

namespace {

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

Error LockLimitError(int error, size_t bytes) {
  if (error != EPERM && error != ENOMEM) return ErrnoError(error, "cannot map an event's ring");
  const auto limit = ReadNumberFile("/proc/sys/kernel/perf_event_mlock_kb");
  Error out(ErrorKind::kPermission,
            fmt::format("cannot map a ring of {} KB: the memory that this user may lock is used up "
                        "(kernel.perf_event_mlock_kb is {} a CPU, and `ulimit -l` beyond it)",
                        bytes / 1024, limit ? std::to_string(*limit) : "unknown"));
  return std::move(out).WithCure(
      "record with smaller rings: -m 64\n"
      "let this user lock more: sudo sysctl kernel.perf_event_mlock_kb=8192");
}

}  // namespace

Result<size_t> ConsumeRing(ByteView data, uint64_t tail, uint64_t head,
                           std::vector<uint8_t>& joined,
                           const std::function<Status(ByteView record)>& consume) {
  const size_t mask = data.size() - 1;
  CHECK(!data.empty() && (data.size() & mask) == 0);
  if (head - tail > data.size()) {
    return Fail(ErrorKind::kDamaged,
                fmt::format("the kernel's ring is out of step: {} bytes in a ring of {}",
                            head - tail, data.size()));
  }
  uint64_t at = tail;
  while (at != head) {
    // Records are multiples of 8 bytes, so a header never wraps.
    const size_t offset = at & mask;
    const auto size = head - at < perfdata::kRecordHeaderSize
                          ? uint16_t{0}
                          : LoadUnaligned<uint16_t>(data.data() + offset + 6, kNativeEndian);
    if (size < perfdata::kRecordHeaderSize || size % 8 != 0 || size > head - at) {
      return Fail(
          ErrorKind::kDamaged,
          fmt::format("the kernel's ring is out of step: a record of {} bytes at {:#x}", size, at));
    }
    ByteView record = data.subspan(offset, std::min<size_t>(size, data.size() - offset));
    if (record.size() < size) {
      joined.assign(record.begin(), record.end());
      const ByteView rest = data.first(size - record.size());
      joined.insert(joined.end(), rest.begin(), rest.end());
      record = joined;
    }
    TRY(consume(record));
    at += size;
  }
  return static_cast<size_t>(head - tail);
}

Result<std::unique_ptr<PerfRing>> PerfRing::Map(const Fd& fd, size_t data_pages) {
  CHECK(data_pages != 0 && (data_pages & (data_pages - 1)) == 0);
  const size_t page = PageSize();
  const size_t size = (data_pages + 1) * page;
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return Fail(LockLimitError(errno, data_pages * page));
  std::unique_ptr<PerfRing> ring(new PerfRing);
  ring->base_ = base;
  ring->size_ = size;
  // Kernels before 4.1 do not say where the data is.
  const auto* control = static_cast<const perf_event_mmap_page*>(base);
  ring->data_offset_ = control->data_offset != 0 ? control->data_offset : page;
  ring->data_size_ = control->data_size != 0 ? control->data_size : data_pages * page;
  return ring;
}

PerfRing::~PerfRing() {
  if (base_ != nullptr) munmap(base_, size_);
}

Result<size_t> PerfRing::Drain(const std::function<Status(ByteView record)>& consume) {
  auto* control = static_cast<perf_event_mmap_page*>(base_);
  static_assert(sizeof(control->data_head) == sizeof(uint64_t));
  // data_head is the kernel's, data_tail ours. Acquire: the records before the head are seen.
  // Release: they were read before the kernel may overwrite them.
  const std::atomic_ref<__u64> head_ref(control->data_head);
  const std::atomic_ref<__u64> tail_ref(control->data_tail);
  const uint64_t head = head_ref.load(std::memory_order_acquire);
  const uint64_t tail = tail_ref.load(std::memory_order_relaxed);
  if (head == tail) return size_t{0};
  const ByteView data(static_cast<const uint8_t*>(base_) + data_offset_, data_size_);
  auto taken = ConsumeRing(data, tail, head, joined_, consume);
  tail_ref.store(head, std::memory_order_release);
  return taken;
}

bool PerfRing::ReadTimeConversion(TimeConversion& out) const {
  const auto* control = static_cast<const volatile perf_event_mmap_page*>(base_);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint32_t sequence = control->lock;
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool known = control->cap_user_time_zero != 0;
    out = {.shift = control->time_shift, .mult = control->time_mult, .zero = control->time_zero};
    std::atomic_thread_fence(std::memory_order_acquire);
    if ((sequence & 1) == 0 && control->lock == sequence) return known;
  }
  return false;
}

}  // namespace stackreel::os
