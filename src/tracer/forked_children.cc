#include "tracer/forked_children.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "os/proc.h"
#include "tracer/recover.h"

namespace stackreel::tracer {

bool MapsPool(uint32_t pid, uint64_t pool_inode) {
  const std::string name = fmt::format("/memfd:{}", kPoolName);
  // Most processes have no mapping of that name: their maps are not taken apart.
  const auto text = os::ReadTextFile(fmt::format("/proc/{}/maps", pid));
  if (!text || !text->contains(name)) return false;
  return std::ranges::any_of(os::ParseProcMaps(*text), [&](const os::ProcMapping& mapping) {
    return mapping.ino == pool_inode && std::string_view(mapping.path).starts_with(name);
  });
}

std::vector<uint32_t> FindForkedChildren(uint32_t pid, uint64_t pool_inode) {
  std::vector<uint32_t> found;
  for (const uint32_t candidate : os::ListProcesses()) {
    // This process has it mapped, too.
    if (candidate == pid || candidate == static_cast<uint32_t>(getpid())) continue;
    if (MapsPool(candidate, pool_inode)) found.push_back(candidate);
  }
  return found;
}

size_t LeaveForkedChildren(const Target& parent, const InstalledAgent& agent, UntoldCalls& open) {
  size_t failed = 0;
  for (const uint32_t pid : FindForkedChildren(parent.pid(), agent.pool().inode())) {
    auto target = Target::Open(pid);
    if (!target) continue;
    const auto outcome = Recover(**target, agent.place(), open);
    failed += outcome && outcome->left ? 0 : 1;
  }
  return failed;
}

}  // namespace stackreel::tracer
