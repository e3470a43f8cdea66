#include "anonymize/time_ranges.h"

#include <algorithm>

namespace stackreel::anonymize {

void TimeRanges::Add(ByteView bytes, std::span<const FieldSpan> fields, Endian endian) {
  for (const FieldSpan& span : fields) {
    if (span.info == nullptr || span.info->sensitivity != perfdata::Sensitivity::kTime) continue;
    if (span.width != 8 || span.end - span.begin != 8) continue;
    const auto time = LoadUnaligned<uint64_t>(bytes.data() + span.begin, endian);
    Range& range = ranges_[span.info];
    range.first = std::min(range.first, time);
    range.last = std::max(range.last, time);
  }
}

bool TimeRanges::Has(const perfdata::FieldInfo& field, uint64_t time) const {
  const auto range = ranges_.find(&field);
  return range != ranges_.end() && time >= range->second.first && time <= range->second.last;
}

}  // namespace stackreel::anonymize
