#include "cli/recording_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/input_access.h"
#include "cli/trace_input.h"
#include "cli/written_source.h"
#include "os/file.h"

namespace stackreel::cli {
namespace {

Result<std::unique_ptr<FileSource>> OpenFile(const std::string& path) {
  Result<std::unique_ptr<FileSource>> source = OpenInput(path);
  if (!source && source.error().kind == ErrorKind::kNotFound && source.error().cure.empty()) {
    source.error().cure = "stackreel record -- COMMAND   to make perf.data, or name the recording";
  }
  return source;
}

class PassOver : public perfdata::RecordSink {
 public:
  Status OnRecord(const perfdata::RawRecord& /*raw*/) override { return {}; }
};

// A pipe's content, in a file without a name.
Result<std::unique_ptr<FileSource>> Spool(FileSource& pipe) {
  constexpr size_t kPiece = size_t{1} << 20;
  TRY_ASSIGN(std::unique_ptr<os::OutputFile> file, os::OutputFile::CreateUnnamed());
  std::vector<uint8_t> piece(kPiece);
  uint64_t size = 0;
  while (true) {
    TRY_ASSIGN(const size_t n, pipe.Read(piece));
    if (n == 0) break;
    TRY(file->Write(ByteView(piece).first(n)));
    size += n;
  }
  return std::make_unique<WrittenSource>(std::move(file), size, std::string(pipe.name()));
}

}  // namespace

std::vector<FileSource*> RecordingFiles::parts() const {
  std::vector<FileSource*> parts;
  for (size_t i = 1; i < sources.size(); ++i) parts.push_back(sources[i].get());
  return parts;
}

Result<RecordingFiles> OpenRecordingFiles(const std::string& path) {
  if (IsTrace(path)) {
    return Fail(
        Error(ErrorKind::kUnsupported, "this is a trace, not a recording of samples")
            .At(path)
            .WithCure("stackreel replay, graph, report, flamegraph, dump and info show it\n"
                      "script, report and flamegraph --samples: what was sampled beside it"));
  }
  RecordingFiles files;
  std::error_code error;
  const bool is_directory = IsInputDirectory(path);
  TRY(CheckMayBeRead(path));
  if (is_directory && !std::filesystem::exists(path + "/data", error)) {
    const std::string inside = path + (path.ends_with('/') ? "perf.data" : "/perf.data");
    return Fail(Error(ErrorKind::kNotFound, "this directory is neither a trace nor a recording")
                    .At(path)
                    .WithCure(std::filesystem::exists(inside, error)
                                  ? "-i " + inside
                                  : "stackreel record -- COMMAND   to make perf.data, or name the "
                                    "recording"));
  }
  TRY_ASSIGN(std::unique_ptr<FileSource> data, OpenFile(is_directory ? path + "/data" : path));
  files.sources.push_back(std::move(data));
  for (size_t i = 0; is_directory; ++i) {
    const std::string part = fmt::format("{}/data.{}", path, i);
    if (!std::filesystem::exists(part, error)) break;
    TRY_ASSIGN(std::unique_ptr<FileSource> source, OpenInput(part));
    files.sources.push_back(std::move(source));
  }
  return files;
}

Result<RecordingInput> OpenRecording(const std::string& path) {
  RecordingInput input;
  TRY_ASSIGN(input.files, OpenRecordingFiles(path));
  TRY_ASSIGN(input.reader,
             perfdata::Reader::OpenDirectory(*input.files.sources.front(), input.files.parts()));
  return input;
}

Result<RecordingFiles> OpenRereadableFiles(const std::string& path) {
  TRY_ASSIGN(RecordingFiles files, OpenRecordingFiles(path));
  for (std::unique_ptr<FileSource>& source : files.sources) {
    if (source->size()) continue;
    TRY_ASSIGN(source, Spool(*source));
  }
  return files;
}

Result<std::vector<std::string>> ReadHeaderLines(const std::string& path) {
  TRY_ASSIGN(const RecordingInput input, OpenRecording(path));
  if (input.reader->container() == perfdata::Container::kPipe) {
    PassOver records;
    TRY(input.reader->ReadAll(records));
  }
  return perfdata::DescribeFeatures(input.reader->features(), input.reader->endian());
}

}  // namespace stackreel::cli
