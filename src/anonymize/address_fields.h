// Which addresses the fields of a record or sample have, for verification.
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>
#include <vector>

#include "perfdata/context_marker.h"
#include "perfdata/record.h"
#include "perfdata/sample.h"
#include "perfdata/schema.h"

namespace stackreel::anonymize {

inline bool IsAddress(perfdata::Sensitivity sensitivity) {
  return sensitivity == perfdata::Sensitivity::kCodeAddress ||
         sensitivity == perfdata::Sensitivity::kDataAddress ||
         sensitivity == perfdata::Sensitivity::kMapAddress ||
         sensitivity == perfdata::Sensitivity::kKernelAddress;
}

// Calls tell(field, index, address) for each address that the fields visited have; of arrays,
// counted from their last element back.
template <typename Tell>
class AddressFields {
 public:
  // Those of an array that has its bytes at `passed_over` are passed over.
  AddressFields(const uint8_t* passed_over, Tell tell)
      : passed_over_(passed_over), tell_(std::move(tell)) {}

  template <std::integral N>
  void operator()(const perfdata::FieldInfo& field, const N& value) {
    if (IsAddress(field.sensitivity)) tell_(field, 1, static_cast<uint64_t>(value));
  }
  void operator()(const perfdata::FieldInfo& field, const perfdata::U64Array& values) {
    if (values.bytes().data() != passed_over_ || values.empty()) Chain(field, values);
  }
  void operator()(const perfdata::FieldInfo& field, const std::vector<uint64_t>& values) {
    Chain(field, values);
  }
  void operator()(const perfdata::FieldInfo& field, const perfdata::BranchArray& branches) {
    for (size_t i = 0; i < branches.size(); ++i) {
      const size_t back = 3 * (branches.size() - i);
      tell_(field, back, branches[i].from);
      tell_(field, back - 1, branches[i].to);
    }
  }
  template <typename Other>
  void operator()(const perfdata::FieldInfo&, const Other&) {}

 private:
  // Markers, and the cookie behind the deferred one, are no addresses.
  template <typename Values>
  void Chain(const perfdata::FieldInfo& field, const Values& values) {
    if (!IsAddress(field.sensitivity)) return;
    bool is_cookie = false;
    for (size_t i = 0; i < values.size(); ++i) {
      const uint64_t value = values[i];
      const bool is_marker = !is_cookie && value >= perfdata::kContextMax;
      if (!is_cookie && !is_marker) tell_(field, values.size() - i, value);
      is_cookie = is_marker && value == perfdata::kContextUserDeferred;
    }
  }

  const uint8_t* passed_over_;
  Tell tell_;
};

}  // namespace stackreel::anonymize
