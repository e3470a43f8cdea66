#include "cli/recording_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "os/file.h"

namespace stackreel::cli {
namespace {

Result<std::unique_ptr<FileSource>> OpenFile(const std::string& path) {
  Result<std::unique_ptr<FileSource>> source = os::OpenSource(path);
  if (!source && source.error().kind == ErrorKind::kNotFound && source.error().cure.empty()) {
    source.error().cure = "stackreel record -- COMMAND   to make perf.data, or name the recording";
  }
  return source;
}

}  // namespace

Result<RecordingInput> OpenRecording(const std::string& path) {
  RecordingInput input;
  std::error_code error;
  const bool is_directory = std::filesystem::is_directory(path, error);
  TRY_ASSIGN(std::unique_ptr<FileSource> data, OpenFile(is_directory ? path + "/data" : path));
  input.sources.push_back(std::move(data));
  std::vector<FileSource*> parts;
  for (size_t i = 0; is_directory; ++i) {
    const std::string part = fmt::format("{}/data.{}", path, i);
    if (!std::filesystem::exists(part, error)) break;
    TRY_ASSIGN(std::unique_ptr<FileSource> source, os::OpenSource(part));
    parts.push_back(source.get());
    input.sources.push_back(std::move(source));
  }
  TRY_ASSIGN(input.reader,
             perfdata::Reader::OpenDirectory(*input.sources.front(), std::move(parts)));
  return input;
}

}  // namespace stackreel::cli
