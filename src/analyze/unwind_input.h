// A sample with registers and a dumped stack, as the unwinder takes it.
#pragma once

#include <optional>

#include "base/bytes.h"
#include "perfdata/sample.h"
#include "unwind/unwind.h"

namespace stackreel::analyze {

// All that the sample itself tells; maps, mask and limit are the caller's. Nothing without
// registers (kernel threads). What it views lives as long as what the sample views. Used when
// analysing, when unwinding in a recording, and when recording live.
std::optional<unwind::UnwindInput> UnwindInputOf(const perfdata::Sample& sample, unwind::Arch arch,
                                                 Endian endian);

}  // namespace stackreel::analyze
