// How large records and their parts are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace stackreel::perfdata {

// perf_event_header: u32 type, u16 misc, u16 size; the size counts the header.
inline constexpr size_t kRecordHeaderSize = 8;
inline constexpr size_t kMaxRecordSize = UINT16_MAX;

// What perf pads to; wraps within 8 of 2^64.
constexpr uint64_t AlignTo8(uint64_t n) { return (n + 7) & ~uint64_t{7}; }

}  // namespace stackreel::perfdata
