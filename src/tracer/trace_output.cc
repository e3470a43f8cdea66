#include "tracer/trace_output.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace stackreel::tracer {

namespace {

namespace fs = std::filesystem;

constexpr std::array<const char*, 3> kFiles = {tracedata::kCallsFile, tracedata::kFactsFile,
                                               tracedata::kSamplesFile};

bool IsTrace(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (std::ranges::find(kFiles, std::string_view(name)) == kFiles.end()) return false;
  }
  return !error;
}

// The directory, for as long as this is open nobody else's. Where it cannot be locked (some file
// systems of networks) it is taken without.
Result<os::Fd> Lock(const std::string& directory) {
  os::Fd folder(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return Fail(os::ErrnoError(errno, "cannot open the directory", directory));
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Fail(
        Error(ErrorKind::kUsage, fmt::format("another stackreel trace writes to {}", directory))
            .WithCure("write to another: -o DIR"));
  }
  return folder;
}

void RemoveTrace(const fs::path& directory) {
  std::error_code error;
  for (const char* name : kFiles) fs::remove(directory / name, error);
  fs::remove(directory, error);
}

// What stands behind DIR.old of a trace that is to be replaced, before the id of who does that.
constexpr std::string_view kReplaced = ".replaced-";

// Of tracers that were killed before they came to it.
void RecoverReplaced(const fs::path& old) {
  const std::string prefix = old.filename().string() + std::string(kReplaced);
  std::error_code error;
  std::vector<fs::path> left;
  const fs::path parent = old.has_parent_path() ? old.parent_path() : ".";
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename();
    if (name.size() == prefix.size() || !name.starts_with(prefix)) continue;
    const bool is_number = name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
    if (is_number && fs::is_directory(entry.symlink_status())) left.push_back(entry.path());
  }
  for (const fs::path& replaced : left) {
    const auto lock = Lock(replaced);
    if (!lock || !IsTrace(replaced)) continue;
    if (fs::exists(fs::symlink_status(old, error))) {
      RemoveTrace(replaced);
    } else {
      fs::rename(replaced, old, error);
    }
  }
}

}  // namespace

Result<FormerTraces> FormerTraces::MoveAway(const std::string& directory) {
  FormerTraces former(directory);
  std::error_code error;
  const fs::path path(directory);
  RecoverReplaced(former.Old());
  if (!fs::exists(fs::symlink_status(path, error))) return former;
  if (!fs::is_directory(path, error) || !IsTrace(path)) {
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("{} is there already, and is no trace of ours", directory))
                    .WithCure("write to another: -o DIR"));
  }
  TRY_ASSIGN(const os::Fd unused, Lock(directory));
  const std::string old = former.Old();
  if (fs::is_directory(old, error) && IsTrace(old)) {
    TRY_ASSIGN(former.older_lock_, Lock(old));
    fs::rename(old, former.Older(), error);
    if (error) return Fail(os::ErrnoError(error.value(), "cannot replace", old));
    former.has_older_ = true;
  }
  fs::rename(path, old, error);
  if (error) {
    former.PutBack();
    return Fail(os::ErrnoError(error.value(), fmt::format("cannot make {} of", old), directory));
  }
  former.has_old_ = true;
  return former;
}

std::string FormerTraces::Old() const { return directory_ + ".old"; }
std::string FormerTraces::Older() const {
  return fmt::format("{}{}{}", Old(), kReplaced, getpid());
}

void FormerTraces::PutBack() {
  std::error_code error;
  if (std::exchange(has_old_, false)) fs::rename(Old(), directory_, error);
  if (error) return Replace();  // it stays DIR.old
  if (std::exchange(has_older_, false)) fs::rename(Older(), Old(), error);
  older_lock_ = {};
}

void FormerTraces::Replace() {
  has_old_ = false;
  if (std::exchange(has_older_, false)) RemoveTrace(Older());
  older_lock_ = {};
}

Result<std::unique_ptr<TraceOutput>> TraceOutput::Create(const std::string& directory, int level) {
  TRY_ASSIGN(FormerTraces former, FormerTraces::MoveAway(directory));
  // Of who traces, as the program's data are in it.
  if (mkdir(directory.c_str(), 0700) != 0) {
    const int why = errno;
    former.PutBack();
    return Fail(os::ErrnoError(why, "cannot make the directory", directory));
  }
  auto output = Begin(directory, level);
  if (output) {
    (*output)->former_ = std::move(former);
  } else {
    RemoveTrace(directory);
    former.PutBack();
  }
  return output;
}

Result<std::unique_ptr<TraceOutput>> TraceOutput::Begin(const std::string& directory, int level) {
  TRY_ASSIGN(os::Fd folder, Lock(directory));
  const auto create = [&](const char* name) -> Result<std::unique_ptr<WholeWrites>> {
    TRY_ASSIGN(auto file, os::OutputFile::CreateInPlace(fmt::format("{}/{}", directory, name)));
    return std::make_unique<WholeWrites>(std::move(file));
  };
  TRY_ASSIGN(auto calls, create(tracedata::kCallsFile));
  TRY_ASSIGN(auto facts, create(tracedata::kFactsFile));
  TRY_ASSIGN(tracedata::TraceWriter writer, tracedata::TraceWriter::Begin(*calls, *facts, level));
  return std::unique_ptr<TraceOutput>(new TraceOutput(
      directory, std::move(folder), std::move(calls), std::move(facts), std::move(writer)));
}

// What was written in part would be damage in the midst of what is written later.
Status TraceOutput::WholeWrites::Write(ByteView bytes) {
  Status written = file_->Write(bytes);
  if (written) {
    size_ += bytes.size();
  } else {
    (void)file_->Truncate(size_);
  }
  return written;
}

Status TraceOutput::StillThere() const {
  for (const char* name : {tracedata::kCallsFile, tracedata::kFactsFile}) {
    struct stat info = {};
    if (fstatat(folder_.get(), name, &info, 0) == 0) continue;
    return Fail(ErrorKind::kIo, fmt::format("{}/{} was removed while it was written: what was "
                                            "recorded is lost",
                                            directory_, name));
  }
  return {};
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
  RemoveTrace(directory_);
  former_.PutBack();
}

uint64_t TraceOutput::bytes() const {
  uint64_t bytes = 0;
  for (const char* name : {tracedata::kCallsFile, tracedata::kFactsFile}) {
    struct stat info = {};
    if (fstatat(folder_.get(), name, &info, 0) == 0) bytes += static_cast<uint64_t>(info.st_size);
  }
  return bytes;
}

}  // namespace stackreel::tracer
