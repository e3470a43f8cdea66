// The functions of a trace as a table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "analyze/trace_calls.h"
#include "analyze/trace_table.h"
#include "base/error.h"

namespace stackreel::views {

enum class TraceColumn : uint8_t {
  kTotal,
  kSelf,
  kCalls,
  kAverage,
  kMin,
  kMax,
  kP50,
  kP90,
  kP99,
  kFunction
};

// "total", "self", "calls", "avg", "min", "max", "p50", "p90", "p99", "func".
Result<TraceColumn> ParseTraceColumn(std::string_view text);

struct TraceReportOptions {
  TraceColumn sort = TraceColumn::kTotal;
  size_t max_rows = 0;  // 0: all
};
// Largest first; functions by name.
std::string TraceReportText(analyze::TraceCalls& calls, const analyze::TraceTable& table,
                            const TraceReportOptions& options);
std::string TraceReportCsv(analyze::TraceCalls& calls, const analyze::TraceTable& table,
                           const TraceReportOptions& options);
// {"schema":"stackreel.trace_report","version":1,…}; times in nanoseconds.
std::string TraceReportJson(analyze::TraceCalls& calls, const analyze::TraceTable& table,
                            const TraceReportOptions& options);

}  // namespace stackreel::views
