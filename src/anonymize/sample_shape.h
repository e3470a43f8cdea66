// For verification: samples of one event whose fields lie where they do in all its samples, but for
// the length of the call chain. Whether one of them is clean is seen at a few places; one that may
// not be is looked at in full, as any other record is.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "anonymize/field_spans.h"
#include "anonymize/level.h"
#include "base/bytes.h"
#include "perfdata/attr.h"

namespace stackreel::anonymize {

class SampleShape {
 public:
  // Of an event of which one sample, of `size` bytes, has its fields at `fields`. Nothing if
  // samples have a field whose length may be another, or one that `level` drops.
  static std::optional<SampleShape> Make(const perfdata::Attr& attr,
                                         std::span<const FieldSpan> fields, size_t size,
                                         Level level);

  // Whether the sample is exactly as long as its fields.
  [[nodiscard]] bool Fits(ByteView sample, Endian endian) const;
  // Of one that fits. Whether is_address(value) is true of all its addresses but those of its call
  // chain, and is_nothing(value) of all other numbers that verify_bytes.h looks at, in both orders
  // of bytes, whichever it is that counts.
  template <typename IsAddress, typename IsNothing>
  [[nodiscard]] bool IsClean(ByteView sample, Endian endian, const IsAddress& is_address,
                             const IsNothing& is_nothing) const {
    const size_t grown = sample.size() - size_;
    for (const Run& run : addresses_) {
      const uint8_t* at = sample.data() + run.begin + (run.behind_chain ? grown : 0);
      if (!is_address(LoadUnaligned<uint64_t>(at, endian))) return false;
    }
    for (const Run& run : numbers_) {
      const uint8_t* const begin = sample.data() + (run.behind_chain ? grown : 0);
      for (size_t at = run.begin; at + sizeof(uint64_t) <= run.end; ++at) {
        const auto value = LoadUnaligned<uint64_t>(begin + at, Endian::kLittle);
        if (!is_nothing(value) || !is_nothing(std::byteswap(value))) return false;
      }
    }
    return true;
  }

 private:
  class Maker;
  // Bytes of fields that touch: offsets, as they are where the chain is empty.
  struct Run {
    size_t begin = 0, end = 0;
    bool behind_chain = false;
  };

  std::vector<Run> addresses_;  // of eight bytes each
  std::vector<Run> numbers_;
  std::optional<size_t> chain_;  // where its length stands
  size_t size_ = 0;              // of a sample without entries in its chain
};

}  // namespace stackreel::anonymize
