// perf's cache of binaries by build-id, as `perf buildid-cache` keeps it.
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "os/file.h"
#include "symfiles/symfiles.h"

namespace stackreel::symfiles {

namespace fs = std::filesystem;

namespace {

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  const size_t end = text.find_last_not_of(kBlanks);
  return end == std::string_view::npos ? std::string_view() : text.substr(begin, end + 1 - begin);
}

std::string Getenv(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// "~/x" → "$HOME/x".
std::string ExpandHome(std::string_view path) {
  if (path == "~" || path.starts_with("~/")) return Getenv("HOME") + std::string(path.substr(1));
  return std::string(path);
}

Status MakeFolders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Fail(os::ErrnoError(error.value(), "cannot create folder", folder.string()));
  return {};
}

// Whether a path can stand under the cache folder as it is: no "..", no NUL, not empty.
bool IsPlainPath(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (const fs::path& part : fs::path(path)) {
    if (part == "..") return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> BuildIdDirOfConfig(std::string_view text) {
  std::optional<std::string> dir;
  std::string section;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = Trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      section = std::string(Trim(line.substr(1, line.find(']') - 1)));
      continue;
    }
    const size_t equals = line.find('=');
    if (section != "buildid" || equals == std::string_view::npos) continue;
    if (Trim(line.substr(0, equals)) != "dir") continue;
    std::string_view value = Trim(line.substr(equals + 1));
    if (value.starts_with('"')) {
      value = value.substr(1, value.find('"', 1) - 1);
    } else {
      value = Trim(value.substr(0, value.find_first_of("#;")));
    }
    dir = ExpandHome(value);
  }
  return dir;
}

std::string DefaultBuildIdDir() {
  if (std::string dir = Getenv("PERF_BUILDID_DIR"); !dir.empty()) return ExpandHome(dir);
  std::optional<std::string> dir;
  // As perf: the system's file first, the user's over it.
  for (const std::string& file : {std::string("/etc/perfconfig"), ExpandHome("~/.perfconfig")}) {
    constexpr size_t kLongestConfig = size_t{1} << 20;
    if (const auto text = os::ReadTextFile(file, kLongestConfig)) {
      if (auto found = BuildIdDirOfConfig(*text)) dir = found;
    }
  }
  if (dir && !dir->empty()) return *dir;
  return ExpandHome("~/.debug");
}

std::string CachePath(const std::string& buildid_dir, const BuildId& id, const char* leaf) {
  const std::string hex = id.ToHex();
  if (hex.size() < 4) return "";
  return fmt::format("{}/.build-id/{}/{}/{}", buildid_dir, hex.substr(0, 2), hex.substr(2), leaf);
}

Status AddToCache(const std::string& buildid_dir, const std::string& path, const BuildId& id,
                  ByteView image, const char* leaf) {
  const std::string hex = id.ToHex();
  if (hex.size() < 4) return Fail(ErrorKind::kUsage, fmt::format("{}: has no build-id", path));
  if (!IsPlainPath(path)) {
    return Fail(ErrorKind::kUsage, fmt::format("\"{}\" cannot be a path in the cache", path));
  }
  const std::string below = path.starts_with('/') ? path.substr(1) : path;
  const fs::path folder = fs::path(buildid_dir) / below / hex;
  TRY(MakeFolders(folder));
  const fs::path file = folder / leaf;
  std::error_code error;
  if (!fs::exists(file, error)) {
    TRY_ASSIGN(auto out, os::OutputFile::Create(file.string()));
    TRY(out->Write(image));
    TRY(out->Commit());
  }
  const fs::path link = fs::path(buildid_dir) / ".build-id" / hex.substr(0, 2) / hex.substr(2);
  if (fs::exists(link, error)) return {};
  TRY(MakeFolders(link.parent_path()));
  fs::remove(link, error);  // a link to what is gone
  fs::create_symlink(fs::path("../..") / below / hex, link, error);
  if (error && error != std::errc::file_exists) {
    return Fail(os::ErrnoError(error.value(), "cannot create link", link.string()));
  }
  return {};
}

}  // namespace stackreel::symfiles
