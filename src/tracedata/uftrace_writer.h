// Writes a trace as uftrace's directory, format 4.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/io.h"
#include "tracedata/call_losses.h"
#include "tracedata/trace_source.h"

namespace stackreel::tracedata {

// A directory to make files in.
class FolderWriter {
 public:
  virtual ~FolderWriter() = default;
  // What is written goes to the file at once.
  virtual Result<std::unique_ptr<ByteSink>> Create(const std::string& name) = 0;
};

// One thread's calls after another's. Addresses are made up: each module has a place of its own,
// the same in all processes. Calls that did not return end as others do; what was lost is told; of
// calls deeper than 1023 the depth is written as that. Gives what was lost when it was
// recorded.
Result<CallLosses> WriteUftraceData(TraceSource& source, FolderWriter& out);

}  // namespace stackreel::tracedata
