// A recording by the name given on the command line.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/io.h"
#include "perfdata/reader.h"

namespace stackreel::cli {

// The files of a recording: the one with the header, and those that perf record --threads made.
struct RecordingFiles {
  std::vector<std::unique_ptr<FileSource>> sources;  // the first has the header
  [[nodiscard]] std::vector<FileSource*> parts() const;
};
struct RecordingInput {
  RecordingFiles files;  // the reader's
  std::unique_ptr<perfdata::Reader> reader;
};

// Opens a file, "-", or a directory that perf record --threads made: in it `data` has the header,
// and data.0, data.1, … the records of a thread each.
Result<RecordingFiles> OpenRecordingFiles(const std::string& path);
Result<RecordingInput> OpenRecording(const std::string& path);
// The same of what is to be read more than once: a pipe is copied to a temporary file first.
Result<RecordingFiles> OpenRereadableFiles(const std::string& path);

// What a recording says of machine, command and events (perfdata::DescribeFeatures). A pipe is read
// to its end for it.
Result<std::vector<std::string>> ReadHeaderLines(const std::string& path);

}  // namespace stackreel::cli
