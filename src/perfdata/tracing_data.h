// TRACING_DATA: the formats of tracepoints, as tracefs gave them.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/bytes.h"

namespace stackreel::perfdata {

// An event's config to "system:name".
using TracepointNames = std::map<uint64_t, std::string>;

// The head of trace-cmd's format, version 6:
//   17 08 44 "tracing" version\0 endian:u8 long_size:u8 page_size:u32
//   "header_page\0" size:u64 text   "header_event\0" size:u64 text
//   count:u32 { size:u64 text }     of ftrace's own events
//   count:u32 { system\0 count:u32 { size:u64 text } }
// Adds the tracepoints' names to `names`; false if `bytes` are not that or end too soon.
bool DecodeTracepointNames(ByteView bytes, TracepointNames& names);

}  // namespace stackreel::perfdata
