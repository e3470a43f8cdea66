#include "os/own_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "os/file.h"
#include "os/proc.h"

namespace stackreel::os {
namespace {

std::string StatusOf(uint32_t pid, uint32_t tid) {
  return ReadTextFile(fmt::format("/proc/{}/task/{}/status", pid, tid)).value_or("");
}

// What stands behind "\nKEY:" and blanks, up to the end of the line.
std::string_view ValueOf(std::string_view status, std::string_view key) {
  const size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view line = status.substr(at + key.size());
  line = line.substr(0, line.find('\n'));
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return line;
}

// An id in each namespace that the thread is in, from ours to its own.
std::vector<uint32_t> IdsIn(std::string_view status) {
  std::vector<uint32_t> ids;
  std::string_view line = ValueOf(status, "\nNSpid:");
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    uint32_t id = 0;
    const auto read = std::from_chars(line.data(), line.data() + line.size(), id);
    if (read.ec != std::errc()) return ids;
    ids.push_back(id);
    line.remove_prefix(static_cast<size_t>(read.ptr - line.data()));
  }
}

}  // namespace

uint32_t OwnIds::Of(uint32_t pid, uint32_t tid) {
  const auto [known, is_new] = is_ours_.emplace(pid, false);
  if (is_new) known->second = IdsIn(StatusOf(pid, pid)).size() == 1;
  if (known->second) return tid;
  const std::vector<uint32_t> ids = IdsIn(StatusOf(pid, tid));
  return ids.empty() ? tid : ids.back();
}

std::set<uint32_t> OwnIdsOfProcesses() {
  std::set<uint32_t> found;
  for (const uint32_t pid : ListProcesses()) {
    const std::string status = StatusOf(pid, pid);
    const std::vector<uint32_t> ids = IdsIn(status);
    if (ids.empty()) continue;  // it has ended meanwhile
    const std::string_view state = ValueOf(status, "\nState:");
    // Of one whose first thread has ended the others may go on.
    const bool has_ended =
        (state.starts_with('Z') || state.starts_with('X')) && ValueOf(status, "\nThreads:") == "1";
    if (!has_ended) found.insert(ids.back());
  }
  return found;
}

}  // namespace stackreel::os
