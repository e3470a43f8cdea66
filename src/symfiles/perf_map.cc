#include "symfiles/perf_map.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <string_view>
#include <vector>

#include "os/file.h"

namespace stackreel::symfiles {

uint32_t InnermostPid(const std::string& status) {
  constexpr std::string_view kKey = "NSpid:";
  std::string_view text = status;
  const size_t at = text.starts_with(kKey) ? 0 : text.find("\nNSpid:");
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(text.find(':', at) + 1);
  text = text.substr(0, text.find('\n'));
  const size_t last = text.find_last_of(" \t");
  if (last != std::string_view::npos) text.remove_prefix(last + 1);
  uint32_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  return pid;
}

Status CheckOwner(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Fail(ErrorKind::kNotFound, path + ": not there");
  if (info.st_uid == 0 || info.st_uid == geteuid()) return {};
  return Fail(ErrorKind::kPermission,
              fmt::format("{}: belongs to user {}, not to you or root", path, info.st_uid));
}

Result<std::string> ReadPerfMap(uint32_t pid) {
  std::vector<std::string> files;
  if (const auto status = os::ReadTextFile(fmt::format("/proc/{}/status", pid))) {
    if (const uint32_t inner = InnermostPid(*status); inner != 0) {
      files.push_back(fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, inner));
    }
  }
  files.push_back(fmt::format("/tmp/perf-{}.map", pid));
  Error last(ErrorKind::kNotFound, fmt::format("no perf map: {} is not there", files.back()));
  for (const std::string& file : files) {
    const Status ours = CheckOwner(file);
    if (!ours && ours.error().kind != ErrorKind::kNotFound) last = ours.error();
    if (!ours) continue;
    auto text = os::ReadTextFile(file);
    if (text) return text;
    last = text.error();
  }
  return Fail(last);
}

}  // namespace stackreel::symfiles
