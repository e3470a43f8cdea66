// Reads uftrace's recordings: directories of format 4, and 3.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "base/io.h"
#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

// A directory to read files of.
class TraceFolder {
 public:
  virtual ~TraceFolder() = default;
  [[nodiscard]] virtual const std::string& name() const = 0;
  // The names in it, sorted.
  [[nodiscard]] virtual std::vector<std::string> Files() const = 0;
  // kNotFound if there is none of that name.
  virtual Result<std::unique_ptr<FileSource>> Open(const std::string& name) = 0;
};

bool HasUftraceMagic(ByteView bytes);

// The functions of a recording are found when their addresses are met: tables().functions grows
// with reading. Ticks are nanoseconds. What kernel and perf files tell is passed over, and counted:
// uftrace.passed_over_bytes. Other counters: uftrace.bad_line, uftrace.no_map (sessions),
// uftrace.no_symbols (modules), uftrace.unknown_symbol (addresses), uftrace.event (passed over),
// uftrace.unknown_values (arguments that no specification describes: passed over),
// tracedata.damaged_bytes, tracedata.out_of_order.
//
// kDamaged, kUnsupported: see ParseUftraceInfo.
Result<std::unique_ptr<TraceSource>> OpenUftraceData(std::unique_ptr<TraceFolder> folder);

}  // namespace stackreel::tracedata
