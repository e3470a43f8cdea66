// For verification: which samples of OUT are clean, seen quickly. Of one that is not clean, or may
// not be, nothing is said here: it is looked at in full, as every other record is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "anonymize/field_spans.h"
#include "anonymize/level.h"
#include "anonymize/originals.h"
#include "anonymize/sample_shape.h"
#include "base/bytes.h"
#include "perfdata/attr.h"
#include "perfdata/chain_tail.h"
#include "perfdata/sample.h"

namespace stackreel::anonymize {

class CleanSamples {
 public:
  // Both must outlive it. `endian`: of OUT.
  CleanSamples(const OriginalValues& originals, const AllowedPlaces& places, Endian endian)
      : originals_(originals), places_(places), endian_(endian) {}

  // Whether an address is where OUT has nothing.
  [[nodiscard]] bool IsOutside(uint64_t address) const { return !places_.Has(address); }
  // Whether it is one of IN's below 4 GB, where that says something.
  [[nodiscard]] bool IsLow(uint64_t address) const;
  // Whether nothing is wrong with any entry of a chain, and with their number. Chains of one thread
  // are quickest looked at one behind the other.
  bool IsCleanChain(const perfdata::U64Array& chain, uint32_t thread);

  // From a sample that was looked at in full, with its fields: where the event's samples have
  // theirs.
  void LearnShape(uint32_t event, const perfdata::Attr& attr, std::span<const FieldSpan> fields,
                  size_t size, Level level);
  [[nodiscard]] bool HasShapeOf(uint32_t event) const {
    return event < shapes_.size() && shapes_[event].has_value();
  }
  // Whether nothing is wrong with a sample of an event that has a shape, as far as addresses and
  // what was one go. `sample` is what `record` decodes to.
  bool IsClean(ByteView record, uint32_t event, const perfdata::Sample& sample);

 private:
  static constexpr size_t kAddresses = 4096, kThreads = 64;

  // Whether bytes that are this number are what verify_bytes.h looks for.
  [[nodiscard]] bool IsSearchedFor(uint64_t number) const;

  const OriginalValues& originals_;
  const AllowedPlaces& places_;
  Endian endian_;
  std::vector<uint64_t> addresses_ = std::vector<uint64_t>(kAddresses);  // clean ones, as 0 is
  std::array<perfdata::ChainTail, kThreads> chains_;                     // the last clean ones
  std::vector<std::optional<SampleShape>> shapes_;                       // by event
};

}  // namespace stackreel::anonymize
