// A recording by the name given on the command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/io.h"
#include "perfdata/reader.h"

namespace stackreel::cli {

struct RecordingInput {
  std::vector<std::unique_ptr<FileSource>> sources;  // the reader's
  std::unique_ptr<perfdata::Reader> reader;
};

// Opens a file, "-", or a directory that perf record --threads made: in it `data` has the header,
// and data.0, data.1, … the records of a thread each.
Result<RecordingInput> OpenRecording(const std::string& path);

}  // namespace stackreel::cli
