// The TRACING_DATA feature: what the fields of recorded tracepoints are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "perfdata/attr.h"

namespace stackreel::record {

// The trace-event description, version 0.6, of the tracepoints among `events`, read from the
// tracefs folder; empty if there is none among them.
//   17 08 44 "tracing" "0.6\0" | u8 big endian | u8 sizeof(long) | u32 page size
//   "header_page\0" u64 size, text | "header_event\0" u64 size, text
//   u32 0 (ftrace's own events) | u32 systems: name\0, u32 events: u64 size, format text
//   u32 0 (kallsyms) | u32 size, printk_formats | u64 0 (saved_cmdlines)
Result<std::vector<uint8_t>> ReadTracingData(const std::string& tracefs,
                                             const std::vector<perfdata::Event>& events);

}  // namespace stackreel::record
