#include "cli/input_access.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "os/file.h"
#include "tracedata/trace_writer.h"

namespace stackreel::cli {

namespace {

// "./a" of "/home/a/": where a copy of it goes.
std::string CopyOf(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return "./" + path.substr(path.rfind('/') + 1);
}

std::string CureOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return fmt::format(
        "sudo cp -r {} . && sudo chown -R \"$USER\" {}   as a folder above it is closed to you",
        path, CopyOf(path));
  }
  const bool is_directory = S_ISDIR(info.st_mode);
  return fmt::format("sudo chown {}\"$USER\" {}   as whoever {} may read it only, such as root",
                     is_directory ? "-R " : "", path,
                     is_directory ? "recorded or traced" : "recorded");
}

}  // namespace

bool IsInputDirectory(const std::string& path) {
  std::error_code error;
  return path != "-" && std::filesystem::is_directory(path, error);
}

Result<std::unique_ptr<FileSource>> OpenInput(const std::string& path) {
  Result<std::unique_ptr<FileSource>> source = os::OpenSource(path);
  if (!source && source.error().kind == ErrorKind::kPermission) source.error().cure = CureOf(path);
  return source;
}

Status CheckMayBeRead(const std::string& path) {
  if (path == "-") return {};
  const auto refuse = [&path](const char* what, const std::string& file) {
    // One file is seldom all: the cure is of the directory.
    return Fail(os::ErrnoError(EACCES, what, file).WithCure(CureOf(path)));
  };
  // As whom we act, which is not always as whom we were started. Nothing is opened: of a FIFO that
  // would wait.
  const auto is_refused = [](const std::string& file, int mode) {
    return faccessat(AT_FDCWD, file.c_str(), mode, AT_EACCESS) != 0 && errno == EACCES;
  };
  if (is_refused(path, F_OK)) return refuse("cannot open", path);
  if (!IsInputDirectory(path)) return {};
  if (is_refused(path, X_OK)) return refuse("cannot look into the directory", path);
  for (const char* name : {tracedata::kCallsFile, tracedata::kFactsFile, "info", "data"}) {
    const std::string file = fmt::format("{}/{}", path, name);
    if (is_refused(file, R_OK)) return refuse("cannot open", file);
  }
  return {};
}

}  // namespace stackreel::cli
