#include "os/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <memory>

namespace stackreel::os {
namespace {

uintptr_t BytesOfPage() { return static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)); }

void MakePages(void* start, size_t size) {
  const uintptr_t page = BytesOfPage();
  const uintptr_t first = (reinterpret_cast<uintptr_t>(start) + page - 1) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(start) + size) & ~(page - 1);
  if (first >= end) return;
  auto* pages = reinterpret_cast<void*>(first);  // NOLINT(performance-no-int-to-ptr)
  (void)madvise(pages, end - first, MADV_HUGEPAGE);
  (void)madvise(pages, end - first, MADV_POPULATE_WRITE);
}

void MapPages(const void* start, size_t size) {
  const uintptr_t page = BytesOfPage();
  const uintptr_t first = reinterpret_cast<uintptr_t>(start) & ~(page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(start) + size;
  if (first >= end) return;
  auto* pages = reinterpret_cast<void*>(first);  // NOLINT(performance-no-int-to-ptr)
  (void)madvise(pages, end - first, MADV_POPULATE_READ);
}

}  // namespace

// Huge pages are made where none was made yet: malloc must not write into the stretch before the
// kernel is told. So the heap goes on one small page before a huge one can begin, and is made to
// grow by a block so small that what malloc writes around it stays in that page.
void PrepareHeap() {
  // Only addresses are taken: pages come when they are used.
  constexpr int kStretch = 64 << 20;
  constexpr int kLargestBlock = 32 << 20;  // the most that glibc allows
  constexpr int kUsualPad = 1 << 20;
  constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  mallopt(M_TRIM_THRESHOLD, 2 * kStretch);
  mallopt(M_TOP_PAD, kStretch);
  const uintptr_t page = BytesOfPage();
  const auto old_end = reinterpret_cast<uintptr_t>(sbrk(0));
  const uintptr_t start = (old_end + page + kHugePage - 1) & ~(kHugePage - 1);
  // malloc takes it that others move the end of the heap; what is passed over stays without memory.
  (void)sbrk(static_cast<intptr_t>(start - page - old_end));
  // What malloc has left of the heap's first piece is used up before the heap grows.
  std::array<std::unique_ptr<std::array<char, 2048>>, 128> blocks;
  for (auto& block : blocks) {
    block = std::make_unique_for_overwrite<std::array<char, 2048>>();
    if (reinterpret_cast<uintptr_t>(block.get()) >= start - page) break;
  }
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  if (end > start) {
    auto* stretch = reinterpret_cast<void*>(start);  // NOLINT(performance-no-int-to-ptr)
    (void)madvise(stretch, end - start, MADV_HUGEPAGE);
  }
  mallopt(M_TOP_PAD, kUsualPad);
}

PageAdvice KernelPageAdvice() { return {.will_write = MakePages, .will_read = MapPages}; }

}  // namespace stackreel::os
