// A trace of any format, written as ours.
#pragma once

#include "base/error.h"
#include "tracedata/call_losses.h"
#include "tracedata/trace_source.h"
#include "tracedata/trace_writer.h"

namespace stackreel::tracedata {

// All facts and events; ends of calls that are missing are written as kLeft. Function ids become
// rows of the source's table. Gives what was lost when it was recorded.
Result<CallLosses> CopyTrace(TraceSource& source, TraceWriter& writer);

}  // namespace stackreel::tracedata
