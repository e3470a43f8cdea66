// Verification of OUT by itself: every record, feature and byte, given what IN was.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "anonymize/field_spans.h"
#include "anonymize/findings.h"
#include "anonymize/hidden_values.h"
#include "anonymize/originals.h"
#include "anonymize/time_ranges.h"
#include "anonymize/verify.h"
#include "anonymize/verify_record.h"
#include "anonymize/verify_samples.h"
#include "anonymize/verify_side_by_side.h"
#include "anonymize/verify_text.h"

namespace stackreel::anonymize {

// What must be known of IN.
struct InFacts {
  explicit InFacts(Level level) : samples(level) {}
  Endian endian = Endian::kLittle;
  SeenMappings mappings;
  OriginalValues originals;
  std::map<uint32_t, std::string> pmu_names;
  std::map<uint32_t, uint64_t> records;  // by type
  size_t events = 0;
  TimeRanges times;  // but of samples
  bool fits_side_by_side = false;
  SampleDigests samples;
};

struct OutCheck {
  Level level = Level::kAddresses;
  const RereadableRecording& recording;  // IN
  const InFacts& in;
  const AllowedPlaces& places;
  const TextSearch& texts;
  const TextSearch& modules;  // names that may be those of public functions, too
  HiddenValues& hidden;
  const std::map<uint32_t, uint64_t>& records;  // of OUT, by type
  // What is not as in IN in frames, by number of the sample; told with the sample's place.
  const std::map<uint64_t, std::string>& differences;
  bool keeps_raw = false;
  // Reads OUT, and tells of frames; null: nobody reads IN beside it.
  SideBySide* side_by_side = nullptr;
};

struct OutCounts {
  SampleDigests samples;
  uint64_t bytes = 0;
};

Result<OutCounts> CheckOut(const RereadableRecording::Opened& out, const OutCheck& check,
                           Findings& findings);

}  // namespace stackreel::anonymize
