// Addresses that are others' when their bytes are read the other way round.
//
// Of addresses the verifier looks at both byte orders, so that none goes out swapped. A new one may
// be an original so by chance: 0x49bcf07f0000 is 0x7ff0bc490000. With many mappings around both
// that happens once in a few thousand recordings, and it cannot be told from a leak. So such
// addresses are not given.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "anonymize/place.h"

namespace stackreel::anonymize {

class SwappedSpans {
 public:
  SwappedSpans() = default;
  // Of `spans`, in any order. Of those larger than 4 GB, in which every address would be one, the
  // first and the last page count, as they do for the verifier.
  explicit SwappedSpans(std::span<const Span> spans);

  // Whether the address, swapped, is in one of the spans.
  [[nodiscard]] bool Has(uint64_t address) const;
  // Whether any of [start, end) is. Of more than some hundred megabytes that is not asked.
  [[nodiscard]] bool HasAnyOf(uint64_t start, uint64_t end) const;

 private:
  std::vector<Span> spans_;
  std::vector<uint16_t> endings_;  // the lowest 16 bits of addresses that are some
};

}  // namespace stackreel::anonymize
