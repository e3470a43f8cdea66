// How a kernel hands pointer-authentication masks to a recording: the interface of the series in
// kernel/, see docs/pointer-authentication.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "os/pointer_authentication.h"

namespace stackreel::os {

enum class MaskRoute : uint8_t {
  kRecords,  // PTR_AUTH records, sent when they change; /proc/PID/ptr_auth for what ran before
  kSamples,  // in each sample
  kCpu,      // not at all: this CPU is asked
};

// What was tried out.
struct MaskProbe {
  int records_error = 0;          // errno of opening an event with attr.ptr_auth; 0: it opens
  int samples_error = 0;          // of one with PERF_SAMPLE_ARCH_1
  bool has_codes = false;         // arm64, and the CPU has pointer authentication
  bool has_proc_file = false;     // /proc/self/ptr_auth is there, and reads
  bool samples_are_ours = false;  // a sample of our own had our own masks in it
};
// Opens events on this very task, for a moment. What other kernels may mean by the same bits is not
// taken for ours.
MaskProbe ProbeKernelMasks();

struct MaskChoice {
  MaskRoute route = MaskRoute::kCpu;
  std::string why_not_better;  // empty for kRecords, and where nothing is ever signed
};
// The best there is, no better than `best`. The bytes that kSamples adds to each sample are worth
// it only where the kernel sends no records.
MaskChoice ChooseMaskRoute(const MaskProbe& probe, MaskRoute best = MaskRoute::kRecords);

// "sent by the kernel when they change", "asked of the CPU (no records of masks: Invalid argument,
// …)".
std::string DescribeMasks(const MaskChoice& choice);

// The keys that PR_PAC_GET_ENABLED_KEYS speaks of. A kernel that says masks speaks of APGA, 16,
// too.
inline constexpr uint64_t kKeysOfPrctl = 0xf;

// The text of such a file: "enabled_keys: 0x1f\ninsn_mask: 0x7f…\ndata_mask: 0x7f…\n", each once,
// in whichever order, among lines that a later kernel may add. kDamaged if it is not.
Result<PointerAuthentication> ParsePtrAuthFile(std::string_view text);
// Of one thread. kNotFound: no such thread, or the kernel has no such files; kPermission: it is
// another user's.
Result<PointerAuthentication> ReadPtrAuthFile(uint32_t pid, uint32_t tid);

}  // namespace stackreel::os
