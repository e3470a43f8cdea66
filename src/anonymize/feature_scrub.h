// The features as they go out.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "anonymize/field_transform.h"
#include "perfdata/features.h"

namespace stackreel::anonymize {

using FeatureBytes = std::map<uint32_t, std::vector<uint8_t>>;

// Each is decoded, treated field by field, and encoded anew, so that nothing goes out that was not
// understood: unknown features, damaged ones, and those that are payload are dropped and reported.
// Left out without a word are those that a Writer makes by itself. `nr_cpus`: NRCPUS's available.
FeatureBytes ScrubFeatures(const FeatureBytes& features, uint32_t nr_cpus, Endian endian,
                           FieldTransform& fields, Report& report);

}  // namespace stackreel::anonymize
