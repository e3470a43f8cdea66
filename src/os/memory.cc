#include "os/memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

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

void PrepareHeap() {
  // Only addresses are taken: pages come when they are used.
  constexpr int kStretch = 64 << 20;
  constexpr int kLargestBlock = 32 << 20;  // the most that glibc allows
  constexpr int kUsualPad = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLargestBlock);
  mallopt(M_TRIM_THRESHOLD, 2 * kStretch);
  mallopt(M_TOP_PAD, kStretch);
  // The heap grows for this block, and by the pad too. The compiler would leave out a block that
  // nobody looks at.
  void* volatile block = std::malloc(kUsualPad);  // NOLINT(cppcoreguidelines-no-malloc)
  std::free(block);                               // NOLINT(cppcoreguidelines-no-malloc)
  mallopt(M_TOP_PAD, kUsualPad);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0));
  auto* start =
      reinterpret_cast<void*>((end - kStretch) & ~(BytesOfPage() - 1));  // NOLINT: as above
  (void)madvise(start, end - reinterpret_cast<uintptr_t>(start), MADV_HUGEPAGE);
}

PageAdvice KernelPageAdvice() { return {.will_write = MakePages, .will_read = MapPages}; }

}  // namespace stackreel::os
