// Recordings of uftrace, which are directories.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "tracedata/trace_source.h"

namespace stackreel::cli {

// Whether there is an info file with uftrace's magic.
bool IsUftraceDirectory(const std::string& path);
Result<std::unique_ptr<tracedata::TraceSource>> OpenUftraceDirectory(const std::string& path);

}  // namespace stackreel::cli
