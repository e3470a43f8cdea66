// TRACING_DATA: the formats of tracepoints, as tracefs gave them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "perfdata/trace_format.h"

namespace stackreel::perfdata {

// An event's config to "system:name".
using TracepointNames = std::map<uint64_t, std::string>;

// The head of trace-cmd's format, version 6:
//   17 08 44 "tracing" version\0 endian:u8 long_size:u8 page_size:u32
//   "header_page\0" size:u64 text   "header_event\0" size:u64 text
//   count:u32 { size:u64 text }     of ftrace's own events
//   count:u32 { system\0 count:u32 { size:u64 text } }
//   size:u32 kallsyms   size:u32 printk_formats   from version 0.6 on: size:u64 saved_cmdlines
struct TracingDataParts {
  struct System {
    std::string_view name;
    std::vector<std::string_view> formats;
  };
  std::string_view version;  // digits and a point
  Endian endian = Endian::kLittle;
  uint8_t long_size = 8;
  uint32_t page_size = 0;
  std::string_view header_page, header_event;
  std::vector<std::string_view> ftrace_formats;
  std::vector<System> systems;
  std::string_view kallsyms, printk_formats, saved_cmdlines;
};
// The parts point into `bytes`. Nothing if `bytes` are not that or end before the last tracepoint;
// what is missing behind it is empty.
std::optional<TracingDataParts> ParseTracingData(ByteView bytes);
std::vector<uint8_t> EncodeTracingData(const TracingDataParts& parts);

// Adds the tracepoints' names to `names`; false if `bytes` are not that or end too soon.
bool DecodeTracepointNames(ByteView bytes, TracepointNames& names);

// The formats of the tracepoints in such bytes, which it keeps.
class TracepointFormats {
 public:
  explicit TracepointFormats(std::vector<uint8_t> bytes);
  // The format of the tracepoint with this config, parsed when first asked for; null if there is
  // none.
  const TraceFormat* Of(uint64_t config);

 private:
  std::vector<uint8_t> bytes_;
  Endian endian_ = Endian::kLittle;
  unsigned long_size_ = 8;
  std::map<uint64_t, std::string_view> texts_;
  std::shared_ptr<const TraceLiterals> literals_;
  std::map<uint64_t, TraceFormat> parsed_;
};

}  // namespace stackreel::perfdata
