#include "views/trace_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/plural.h"
#include "views/json_text.h"
#include "views/trace_text_pieces.h"

namespace stackreel::views {

using analyze::FunctionTimes;
using analyze::TraceCalls;
using analyze::TraceTable;

namespace {

struct ColumnName {
  TraceColumn column;
  std::string_view name;
  std::string_view head;
};
constexpr ColumnName kColumns[] = {
    {TraceColumn::kTotal, "total", "     TOTAL"},  {TraceColumn::kSelf, "self", "       SELF"},
    {TraceColumn::kCalls, "calls", "      CALLS"}, {TraceColumn::kAverage, "avg", "        AVG"},
    {TraceColumn::kMin, "min", "        MIN"},     {TraceColumn::kMax, "max", "        MAX"},
    {TraceColumn::kP50, "p50", "        P50"},     {TraceColumn::kP90, "p90", "        P90"},
    {TraceColumn::kP99, "p99", "        P99"},     {TraceColumn::kFunction, "func", " FUNCTION"},
};

// In nanoseconds, but calls.
uint64_t ValueOf(const TraceCalls& calls, const FunctionTimes& row, TraceColumn column) {
  const auto time = [&](uint64_t ticks) { return calls.scale().Nanoseconds(ticks); };
  // A bucket's middle may lie outside of what was.
  const auto quantile = [&](double fraction) {
    return time(std::clamp(row.durations.Quantile(fraction), row.min, row.max));
  };
  switch (column) {
    case TraceColumn::kTotal:
      return time(row.total);
    case TraceColumn::kSelf:
      return time(row.self);
    case TraceColumn::kCalls:
      return row.calls;
    case TraceColumn::kAverage:
      return time(row.sum / row.calls);
    case TraceColumn::kMin:
      return time(row.min);
    case TraceColumn::kMax:
      return time(row.max);
    case TraceColumn::kP50:
      return quantile(0.5);
    case TraceColumn::kP90:
      return quantile(0.9);
    case TraceColumn::kP99:
      return quantile(0.99);
    case TraceColumn::kFunction:
      break;
  }
  return 0;
}

std::vector<const FunctionTimes*> Sorted(TraceCalls& calls, const TraceTable& table,
                                         const TraceReportOptions& options) {
  struct Key {
    uint64_t value;
    const std::string* name;
    const FunctionTimes* row;
  };
  std::vector<Key> keys;
  keys.reserve(table.rows.size());
  for (const FunctionTimes& row : table.rows) {
    keys.push_back({ValueOf(calls, row, options.sort), &calls.names().NameOf(row.function), &row});
  }
  std::ranges::sort(keys, [](const Key& a, const Key& b) {
    if (a.value != b.value) return a.value > b.value;
    return *a.name != *b.name ? *a.name < *b.name : a.row->function < b.row->function;
  });
  if (options.max_rows != 0 && keys.size() > options.max_rows) keys.resize(options.max_rows);
  std::vector<const FunctionTimes*> rows;
  for (const Key& key : keys) rows.push_back(key.row);
  return rows;
}

uint64_t Unfinished(const TraceTable& table) {
  return std::accumulate(table.rows.begin(), table.rows.end(), uint64_t{0},
                         [](uint64_t sum, const auto& row) { return sum + row.unfinished; });
}

}  // namespace

Result<TraceColumn> ParseTraceColumn(std::string_view text) {
  const auto* found = std::ranges::find(kColumns, text, &ColumnName::name);
  if (found != std::ranges::end(kColumns)) return found->column;
  return Fail(Error(ErrorKind::kUsage, fmt::format("a trace cannot be sorted by '{}'", text))
                  .WithCure("total, self, calls, avg, min, max, p50, p90, p99, func"));
}

std::string TraceReportText(TraceCalls& calls, const TraceTable& table,
                            const TraceReportOptions& options) {
  std::string out =
      fmt::format("# {} of {} in {}", Plural(table.calls, "call"),
                  Plural(table.rows.size(), "function"), Plural(table.threads, "thread"));
  if (const uint64_t unfinished = Unfinished(table); unfinished != 0) {
    out += fmt::format("; {} of them had not ended", unfinished);
  }
  out += "\n#";
  for (const ColumnName& column : kColumns) {
    out += column.head;
    out += ' ';
  }
  out.back() = '\n';
  for (const FunctionTimes* row : Sorted(calls, table, options)) {
    for (const ColumnName& column : kColumns) {
      const uint64_t value = ValueOf(calls, *row, column.column);
      if (column.column == TraceColumn::kFunction) {
        out += ' ';
        out += calls.names().NameOf(row->function);
      } else if (column.column == TraceColumn::kCalls) {
        AppendNumber(out, value, 11);
        out += ' ';
      } else {
        AppendDuration(out, value);
        out += ' ';
      }
    }
    out += '\n';
  }
  return out;
}

std::string TraceReportCsv(TraceCalls& calls, const TraceTable& table,
                           const TraceReportOptions& options) {
  std::string out =
      "total_ns,self_ns,calls,avg_ns,min_ns,max_ns,p50_ns,p90_ns,p99_ns,function,module\n";
  const auto quoted = [&](std::string_view text) {
    out += '"';
    for (const char c : text) {
      if (c == '"') out += '"';
      out += c;
    }
    out += '"';
  };
  for (const FunctionTimes* row : Sorted(calls, table, options)) {
    for (const ColumnName& column : kColumns) {
      if (column.column == TraceColumn::kFunction) continue;
      AppendNumber(out, ValueOf(calls, *row, column.column));
      out += ',';
    }
    quoted(calls.names().NameOf(row->function));
    out += ',';
    quoted(calls.names().ModuleNameOf(row->function));
    out += '\n';
  }
  return out;
}

std::string TraceReportJson(TraceCalls& calls, const TraceTable& table,
                            const TraceReportOptions& options) {
  std::string out = fmt::format(
      "{{\"schema\":\"stackreel.trace_report\",\"version\":1,\"calls\":{},\"threads\":{},"
      "\"unfinished_calls\":{},\"functions\":[",
      table.calls, table.threads, Unfinished(table));
  bool first = true;
  for (const FunctionTimes* row : Sorted(calls, table, options)) {
    out += first ? "\n{" : ",\n{";
    first = false;
    for (const ColumnName& column : kColumns) {
      if (column.column == TraceColumn::kFunction) continue;
      out += fmt::format("\"{}{}\":{},", column.name,
                         column.column == TraceColumn::kCalls ? "" : "_ns",
                         ValueOf(calls, *row, column.column));
    }
    out += "\"function\":";
    AppendJsonString(out, calls.names().NameOf(row->function));
    out += ",\"module\":";
    AppendJsonString(out, calls.names().ModuleNameOf(row->function));
    out += '}';
  }
  return out + "\n]}\n";
}

}  // namespace stackreel::views
