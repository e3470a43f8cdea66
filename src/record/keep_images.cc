#include "record/keep_images.h"

#include "os/file.h"
#include "symfiles/symfiles.h"

namespace stackreel::record {

namespace {

bool IsCached(const std::string& dir, const BuildId& id, const char* leaf) {
  return os::MapFile(symfiles::CachePath(dir, id, leaf)).has_value();
}

}  // namespace

Status KeepImages(const KernelImage& kernel, const VdsoImages& vdsos) {
  const std::string dir = symfiles::DefaultBuildIdDir();
  for (const VdsoImages::Image& vdso : vdsos.images()) {
    if (IsCached(dir, vdso.id, "vdso")) continue;
    TRY(symfiles::AddToCache(dir, "[vdso]", vdso.id, vdso.bytes->bytes(), "vdso"));
  }
  if (kernel.build_id && kernel.text_start != 0 && !IsCached(dir, *kernel.build_id, "kallsyms")) {
    TRY_ASSIGN(const std::string kallsyms, os::ReadTextFile("/proc/kallsyms"));
    TRY(symfiles::AddToCache(dir, "[kernel.kallsyms]", *kernel.build_id, AsBytes(kallsyms),
                             "kallsyms"));
  }
  return {};
}

}  // namespace stackreel::record
