#include "record/vdso_images.h"

#include <utility>

#include "base/memory_io.h"
#include "elf/image.h"
#include "os/proc.h"

namespace stackreel::record {

VdsoImages::VdsoImages() : native_(Make(os::ReadOwnVdso())) {}

VdsoImages::Image VdsoImages::Make(std::vector<uint8_t> bytes) {
  Image made;
  if (const auto image = elf::Image::Parse(bytes)) {
    made.id = image->ReadBuildId().value_or(BuildId());
  }
  made.bytes = std::make_shared<MemoryImage>(std::move(bytes), "[vdso]");
  return made;
}

BuildId VdsoImages::IdAt(uint32_t pid, uint64_t addr, uint64_t len) {
  if (addr > UINT32_MAX) return native_.id;
  constexpr uint64_t kMaxSize = 64 << 10;  // they are one or two pages
  if (compat_.id.empty() && len <= kMaxSize) {
    if (auto bytes = os::ReadProcessMemory(pid, addr, len)) compat_ = Make(*std::move(bytes));
  }
  return compat_.id;
}

FileImagePtr VdsoImages::Find(const BuildId& id) const {
  if (id.empty()) return nullptr;
  if (id == native_.id) return native_.bytes;
  return id == compat_.id ? compat_.bytes : nullptr;
}

std::vector<VdsoImages::Image> VdsoImages::images() const {
  std::vector<Image> known;
  for (const Image& image : {native_, compat_}) {
    if (!image.id.empty()) known.push_back(image);
  }
  return known;
}

}  // namespace stackreel::record
