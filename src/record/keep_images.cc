#include "record/keep_images.h"

#include "elf/image.h"
#include "os/file.h"
#include "os/proc.h"
#include "symfiles/symfiles.h"

namespace stackreel::record {

namespace {

bool IsCached(const std::string& dir, const BuildId& id, const char* leaf) {
  return os::MapFile(symfiles::CachePath(dir, id, leaf)).has_value();
}

}  // namespace

Status KeepImages(const KernelImage& kernel) {
  const std::string dir = symfiles::DefaultBuildIdDir();
  const std::vector<uint8_t> vdso = os::ReadOwnVdso();
  if (const auto image = elf::Image::Parse(vdso)) {
    const auto id = image->ReadBuildId();
    if (id && !IsCached(dir, *id, "vdso")) {
      TRY(symfiles::AddToCache(dir, "[vdso]", *id, vdso, "vdso"));
    }
  }
  if (kernel.build_id && kernel.text_start != 0 && !IsCached(dir, *kernel.build_id, "kallsyms")) {
    TRY_ASSIGN(const std::string kallsyms, os::ReadTextFile("/proc/kallsyms"));
    TRY(symfiles::AddToCache(dir, "[kernel.kallsyms]", *kernel.build_id, AsBytes(kallsyms),
                             "kallsyms"));
  }
  return {};
}

}  // namespace stackreel::record
