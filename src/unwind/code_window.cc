#include "unwind/code_window.h"

#include <algorithm>

namespace stackreel::unwind {
namespace {

// How far back a scanned function may jump.
constexpr size_t kScanBefore = 1024;

}  // namespace

ByteView CodeBefore(const UnwindMaps& maps, uint64_t avma, size_t size) {
  const UnwindMapping* mapping = maps.Find(avma - 1);
  if (mapping == nullptr || mapping->module == nullptr) return {};
  for (size = std::min<uint64_t>(size, avma - mapping->start); size > 0; --size) {
    const ByteView bytes = mapping->module->BytesAt(Svma(avma - size - mapping->bias));
    if (bytes.size() >= size) return bytes.first(size);
  }
  return {};
}

CodeWindow CodeAround(const UnwindModule& module, Svma svma) {
  if (module.image() == nullptr) return {};
  for (const elf::Segment& segment : module.image()->segments()) {
    if (!segment.executable() || svma.value < segment.vaddr ||
        svma.value - segment.vaddr >= segment.file_size) {
      continue;
    }
    const uint64_t before = std::min<uint64_t>(svma.value - segment.vaddr, kScanBefore);
    return {module.BytesAt(svma - before), before};
  }
  return {};
}

}  // namespace stackreel::unwind
