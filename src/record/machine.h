// What the feature sections say of this machine and this recording.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "perfdata/features.h"

namespace stackreel::record {

using FeatureBytes = std::map<uint32_t, std::vector<uint8_t>>;

// Where to look; tests have folders of their own.
struct MachineFolders {
  std::string proc = "/proc";
  std::string sys = "/sys";
};

// HOSTNAME, OSRELEASE, VERSION, ARCH, NRCPUS, CPUDESC, CPUID, TOTAL_MEM, CPU_TOPOLOGY,
// NUMA_TOPOLOGY, PMU_MAPPINGS, CACHE: those that can be learned here, in native byte order.
FeatureBytes MachineFeatures(const MachineFolders& folders = {});

// CMDLINE.
std::vector<uint8_t> EncodeCmdline(const std::vector<std::string>& cmdline);
// SAMPLE_TIME: of the first and the last sample.
std::vector<uint8_t> EncodeSampleTime(uint64_t first, uint64_t last);
// CLOCKID (resolution) and CLOCK_DATA (the clock and the time of day at one moment).
FeatureBytes ClockFeatures(int32_t clockid);

}  // namespace stackreel::record
