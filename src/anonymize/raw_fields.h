// Raw data of tracepoints, as far as the recording's formats say that a field is harmless.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "anonymize/attr_scrub.h"
#include "anonymize/build.h"
#include "anonymize/level.h"
#include "base/bytes.h"
#include "perfdata/attr.h"
#include "perfdata/features.h"
#include "perfdata/tracing_data.h"

namespace stackreel::anonymize {

// Safe is a single number that is declared neither as a pointer nor as text or an array, in which
// no address can be read: none of a recorded mapping, nor, as wide as a pointer, one that is
// greater than 4 GB (of a 32-bit machine: 64 KB) and no error number. All other bytes become 0.
class RawFields {
 public:
  // `features`: of the recording, with its TRACING_DATA; `remap` must outlive it.
  RawFields(const perfdata::Features& features, const AddressWidth& width, Endian endian,
            const Remap& remap);

  // Whether the recording has the format of this event's raw data.
  [[nodiscard]] bool Knows(const perfdata::Attr& attr);
  // What may stay of one sample's, of the same size. Knows(attr).
  [[nodiscard]] std::vector<uint8_t> Safe(const perfdata::Attr& attr, ByteView raw);

 private:
  [[nodiscard]] bool MayBeAddress(uint64_t value, uint32_t size) const;

  perfdata::TracepointFormats formats_;
  AddressWidth width_;
  Endian endian_;
  const Remap& remap_;
};

// TRACING_DATA without what the recorded kernel says of itself: its symbols (kallsyms), texts by
// their addresses (printk_formats) and the names of tasks (saved_cmdlines) are empty. The formats
// go out, addresses in them moved as in other texts. Nothing if `bytes` are not TRACING_DATA.
std::optional<std::vector<uint8_t>> ScrubTracingData(ByteView bytes, const TextScrub& text);

}  // namespace stackreel::anonymize
