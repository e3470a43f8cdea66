// Where a command puts what it made of a recording.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "os/file.h"

namespace stackreel::cli {

// As os::OutputFile::Create, but no recording is replaced by text made from it, or from another.
// kUsage then.
Result<std::unique_ptr<os::OutputFile>> CreateTextOutput(const std::string& path);

}  // namespace stackreel::cli
