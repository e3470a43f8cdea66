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
// TRACING_DATA keeps its formats, where the names of events stay. Left out without a word are those
// that a Writer makes by itself, and the mark of an anonymised recording. `nr_cpus`: NRCPUS's
// available.
FeatureBytes ScrubFeatures(const FeatureBytes& features, uint32_t nr_cpus, Endian endian,
                           Level level, const TextScrub& text, FieldTransform& fields,
                           Report& report);
// kStackreelAnonymized.
std::vector<uint8_t> MakeMark(Level level, Endian endian);

}  // namespace stackreel::anonymize
