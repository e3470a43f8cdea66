// Verification kinds (b) and (e): numbers that only look like addresses or texts.
//
// A count, a cycle counter, an inode's number may be just then the size of an address of the
// recording, and its bytes letters of a name. It tells nothing if it stood in IN, in the same
// field: that is what was counted, and no address ever came there. A value that IN does not have in
// that field, or one in a field that may hold an address, text or data, is a leak. So what is found
// in such numbers waits until IN is read once more, for the values in question only.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "anonymize/collect.h"
#include "anonymize/field_spans.h"
#include "anonymize/findings.h"

namespace stackreel::anonymize {

class ChanceHits {
 public:
  // All must outlive it. `pmu_names`: of IN.
  ChanceHits(const RereadableRecording& in, const std::map<uint32_t, std::string>& pmu_names,
             Findings& findings)
      : in_(in), pmu_names_(pmu_names), findings_(findings) {}

  // Takes a finding of `size` bytes at `begin` of `bytes`, of which `fields` says what they are: an
  // address, or a text that numbers happen to spell. One that cannot be by chance is passed on at
  // once.
  void Add(const Finding& finding, ByteView bytes, std::span<const FieldSpan> fields, size_t begin,
           size_t size, Endian endian);
  // So many are held that they should be resolved.
  [[nodiscard]] bool full() const { return held_.size() >= kMostHeld; }
  // Passes on those whose numbers IN has not.
  Status Resolve();

 private:
  // A number in a field; of an attr, eight bytes at an offset.
  struct Number {
    const perfdata::FieldInfo* field = nullptr;
    size_t offset = 0;
    uint64_t value = 0;
    friend auto operator<=>(const Number&, const Number&) = default;
  };
  struct Held {
    Finding first;
    uint64_t count = 0;
  };
  class InPass;
  static constexpr size_t kMostHeld = 100'000;

  // Nothing if some of the bytes are no such numbers.
  static std::vector<Number> NumbersAt(ByteView bytes, std::span<const FieldSpan> fields,
                                       size_t begin, size_t size, Endian endian);
  void See(ByteView bytes, std::span<const FieldSpan> fields, Endian endian);
  void SeeEvents(const perfdata::Reader& reader);
  [[nodiscard]] bool WasInIn(const std::vector<Number>& numbers) const;

  const RereadableRecording& in_;
  const std::map<uint32_t, std::string>& pmu_names_;
  Findings& findings_;
  std::map<std::pair<std::string, std::vector<Number>>, Held> held_;  // by record and numbers
  std::map<Number, bool> wanted_;                                     // and whether IN has it
  std::set<const perfdata::FieldInfo*> wanted_fields_;
  std::set<uint64_t> wanted_values_;
};

}  // namespace stackreel::anonymize
