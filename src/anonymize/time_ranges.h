// For verification: when the records of IN are from, by field.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "anonymize/field_spans.h"
#include "base/bytes.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

// From when to when the times of each field are.
class TimeRanges {
 public:
  void Add(ByteView bytes, std::span<const FieldSpan> fields, Endian endian);
  // Whether IN has a time of this field before and one after.
  [[nodiscard]] bool Has(const perfdata::FieldInfo& field, uint64_t time) const;

 private:
  struct Range {
    uint64_t first = UINT64_MAX, last = 0;
  };
  std::map<const perfdata::FieldInfo*, Range> ranges_;
};

}  // namespace stackreel::anonymize
