#include "tracer/trace_output.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

namespace stackreel::tracer {

namespace {

namespace fs = std::filesystem;

bool IsTrace(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (name != tracedata::kCallsFile && name != tracedata::kFactsFile) return false;
  }
  return !error;
}

Status MoveAway(const std::string& directory) {
  std::error_code error;
  const fs::path path(directory);
  if (!fs::exists(fs::symlink_status(path, error))) return {};
  if (!fs::is_directory(path, error) || !IsTrace(path)) {
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("{} is there already, and is no trace of ours", directory))
                    .WithCure("write to another: -o DIR"));
  }
  const fs::path old(directory + ".old");
  if (fs::is_directory(old, error) && IsTrace(old)) {
    for (const char* name : {tracedata::kCallsFile, tracedata::kFactsFile}) {
      fs::remove(old / name, error);
    }
    fs::remove(old, error);
  }
  fs::rename(path, old, error);
  if (error) {
    return Fail(
        os::ErrnoError(error.value(), fmt::format("cannot make {} of", old.string()), directory));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<TraceOutput>> TraceOutput::Create(const std::string& directory, int level) {
  TRY(MoveAway(directory));
  // Of who traces, as the program's data are in it.
  if (mkdir(directory.c_str(), 0700) != 0) {
    return Fail(os::ErrnoError(errno, "cannot make the directory", directory));
  }
  TRY_ASSIGN(auto calls,
             os::OutputFile::CreateInPlace(fmt::format("{}/{}", directory, tracedata::kCallsFile)));
  TRY_ASSIGN(auto facts,
             os::OutputFile::CreateInPlace(fmt::format("{}/{}", directory, tracedata::kFactsFile)));
  TRY_ASSIGN(tracedata::TraceWriter writer, tracedata::TraceWriter::Begin(*calls, *facts, level));
  return std::unique_ptr<TraceOutput>(
      new TraceOutput(directory, std::move(calls), std::move(facts), std::move(writer)));
}

Status TraceOutput::Add(const tracedata::TraceFact& fact) {
  const std::scoped_lock lock(mutex_);
  return writer_.Add(fact);
}

Status TraceOutput::Add(const tracedata::TraceChunk& chunk) {
  const std::scoped_lock lock(mutex_);
  return writer_.Add(chunk);
}

Status TraceOutput::Flush() {
  const std::scoped_lock lock(mutex_);
  return writer_.Flush();
}

void TraceOutput::Discard() {
  std::error_code error;
  for (const char* name : {tracedata::kCallsFile, tracedata::kFactsFile}) {
    fs::remove(fs::path(directory_) / name, error);
  }
  fs::remove(directory_, error);
}

uint64_t TraceOutput::bytes() const {
  uint64_t bytes = 0;
  for (const char* name : {tracedata::kCallsFile, tracedata::kFactsFile}) {
    struct stat info = {};
    if (stat(fmt::format("{}/{}", directory_, name).c_str(), &info) == 0) {
      bytes += static_cast<uint64_t>(info.st_size);
    }
  }
  return bytes;
}

}  // namespace stackreel::tracer
