// What only this machine can give later readers, kept in perf's build-id cache.
#pragma once

#include "record/synthesize.h"
#include "record/vdso_images.h"

namespace stackreel::record {

// Puts the vDSOs' bytes and kallsyms into the cache, if their build-ids are known and they are not
// there yet. Errors are the cache's; a recording is good without.
Status KeepImages(const KernelImage& kernel, const VdsoImages& vdsos);

}  // namespace stackreel::record
