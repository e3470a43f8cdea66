// For verification: a record or feature of OUT, decoded, with the place of each of its fields.
#pragma once

#include <cstdint>
#include <optional>

#include "anonymize/field_spans.h"
#include "perfdata/features.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"

namespace stackreel::anonymize {

// What FieldSpans::spans() are after each: offsets from the start of raw.bytes, or of `bytes`.
// False if it does not decode.
bool FindFieldsOfSample(const perfdata::RawRecord& raw, const perfdata::Attr& attr, Endian endian,
                        perfdata::Sample& sample, FieldSpans& fields);
// Any other record; features that one carries (HEADER_FEATURE, EVENT_UPDATE) field by field. `attr`
// may be null.
std::optional<perfdata::Record> FindFields(const perfdata::RawRecord& raw,
                                           const perfdata::Attr* attr, Endian endian,
                                           uint32_t nr_cpus, FieldSpans& fields);
// What decoding CPU_TOPOLOGY needs of NRCPUS; 0 if it is not known.
inline uint32_t NrCpusOf(const perfdata::Features& features) {
  return features.nr_cpus ? features.nr_cpus->second : 0;
}
bool FindFieldsOfFeature(uint32_t feature, ByteView bytes, Endian endian, uint32_t nr_cpus,
                         FieldSpans& fields);

}  // namespace stackreel::anonymize
