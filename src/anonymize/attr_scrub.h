// Events without what their attrs tell of addresses: wherever an attr stands (the file's table,
// HEADER_ATTR, EVENT_DESC) the same one goes out, as all are written from the events made here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "anonymize/build.h"
#include "anonymize/level.h"
#include "anonymize/pseudonyms.h"
#include "anonymize/report.h"
#include "perfdata/attr.h"
#include "perfdata/features.h"

namespace stackreel::anonymize {

// What an attr's config words mean, as far as addresses go. The numbers of PMUs are those of the
// recording's PMU_MAPPINGS.
enum class EventKind : uint8_t {
  kPlain,       // hardware, software, tracepoint, cache, raw, or of a PMU that takes no address
  kBreakpoint,  // config1 is the address
  kProbe,       // kprobe, uprobe: config1 and config2 are pointers of the recorder, or addresses
  kUnknown,     // of a PMU that the recording does not name: may be a probe
};
EventKind KindOfEvent(const perfdata::Attr& attr, const perfdata::Features& features);

// The bits of sample_type whose fields do not go out.
uint64_t DroppedSampleBits(Level level);

// Addresses of the recording, written in hex in a text.
class TextScrub {
 public:
  // Both must outlive it. `events`: whose breakpoint addresses are looked for as well.
  TextScrub(Remap& remap, const std::vector<perfdata::Event>& events);
  // `text` with every number moved that is, in hex, with 0x or of 8 digits or more, an address of a
  // recorded mapping or a breakpoint's. Where the bytes themselves are such an address, as no
  // text's are, "?" stands for them.
  [[nodiscard]] std::string Moved(std::string_view text) const;
  // Whether the bytes are an address somewhere, in either order, or the number of a page.
  [[nodiscard]] bool HasAddress(ByteView bytes) const;

 private:
  void BlotAddresses(std::string& text) const;

  Remap& remap_;
  std::vector<uint64_t> breakpoints_;
};

// Whether samples of an event keep a raw field.
using KeepsRaw = std::function<bool(const perfdata::Attr&)>;

// The events as they go out, in the same order with the same ids.
std::vector<perfdata::Event> ScrubEvents(const std::vector<perfdata::Event>& events,
                                         const perfdata::Features& features, Level level,
                                         const KeepsRaw& keeps_raw, Remap& remap,
                                         const Pseudonyms& names, Report& report);

}  // namespace stackreel::anonymize
