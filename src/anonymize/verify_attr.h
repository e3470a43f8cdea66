// Verification kind (d): an attr, wherever it stands.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "anonymize/level.h"
#include "anonymize/originals.h"
#include "perfdata/attr.h"

namespace stackreel::anonymize {

// Whether the config words of an event of this type may be addresses: of breakpoints, probes, and
// PMUs that the recording does not name. `pmu_names`: those of the recording, by type.
bool MayHaveAddress(uint32_t type, const std::map<uint32_t, std::string>& pmu_names);

struct AttrFault {
  std::string field, value;
};
// What is wrong with an attr of OUT.
//
// A breakpoint's config1 is less than a page or in one of `places`. The config1 and config2 of
// probes, and of PMUs that the recording does not name, are less than a page: they are pointers of
// the recorder or addresses (perf_kprobe(2), perf_uprobe: kprobe_func, uprobe_path, probe_offset).
// No sample field is asked for that holds payload (but RAW of a tracepoint, if `keeps_raw`), and
// nothing is said of such fields. sig_data and what is behind the fields we know are 0.
std::vector<AttrFault> CheckAttr(const perfdata::Attr& attr, Level level, bool keeps_raw,
                                 const std::map<uint32_t, std::string>& pmu_names,
                                 const AllowedPlaces& places);

}  // namespace stackreel::anonymize
