#include "os/own_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>
#include <vector>

#include "os/file.h"

namespace stackreel::os {
namespace {

// An id in each namespace that the thread is in, from ours to its own.
std::vector<uint32_t> IdsOf(uint32_t pid, uint32_t tid) {
  std::vector<uint32_t> ids;
  const auto text = ReadTextFile(fmt::format("/proc/{}/task/{}/status", pid, tid));
  constexpr std::string_view kKey = "\nNSpid:";
  const size_t at = text ? text->find(kKey) : std::string::npos;
  if (at == std::string::npos) return ids;
  std::string_view line = std::string_view(*text).substr(at + kKey.size());
  line = line.substr(0, line.find('\n'));
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
  if (is_new) known->second = IdsOf(pid, pid).size() == 1;
  if (known->second) return tid;
  const std::vector<uint32_t> ids = IdsOf(pid, tid);
  return ids.empty() ? tid : ids.back();
}

}  // namespace stackreel::os
