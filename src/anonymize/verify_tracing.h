// Verification kind (c): TRACING_DATA, of which only the formats of tracepoints may stay.
#pragma once

#include <string>

#include "base/bytes.h"

namespace stackreel::anonymize {

// What else than formats is in it ("1234 bytes of kallsyms"), or why it cannot be told ("it is not
// TRACING_DATA"); "" if nothing is. Follows trace-cmd.dat(5) version 6, as perf writes it: behind
// the formats u32 size kallsyms, u32 size printk_formats, and from file version 0.6 on u64 size
// saved_cmdlines, which names tasks.
std::string WhatElseIsInTracingData(ByteView bytes);

}  // namespace stackreel::anonymize
