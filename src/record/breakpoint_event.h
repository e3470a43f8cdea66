// Breakpoints as events: mem:ADDR[/LEN][:ACCESS][:MODIFIERS].
#pragma once

#include <string>

#include "base/error.h"
#include "perfdata/attr.h"

namespace stackreel::record {

// True if `text` is meant to be a breakpoint.
bool IsBreakpoint(const std::string& text);

// Sets type, bp_type, bp_addr and bp_len of `attr` (linux/hw_breakpoint.h); gives the modifiers,
// which are not looked at. ADDR is hexadecimal with 0x, or decimal. ACCESS is of r, w and x: rw
// unless given, x alone only. LEN is 1, 2, 4 or 8: of data 4 unless given, of code a long's. kUsage
// with what was expected.
Result<std::string> ParseBreakpoint(const std::string& text, perfdata::Attr& attr);

}  // namespace stackreel::record
