#include "symfiles/mount_namespace.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <filesystem>
#include <string>

namespace stackreel::symfiles {

uint64_t MountNamespaceOf(uint32_t pid) {
  const std::string path =
      pid == 0 ? std::string("/proc/self/ns/mnt") : fmt::format("/proc/{}/ns/mnt", pid);
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

uint32_t ProcessInMountNamespace(uint64_t inode, uint32_t preferred) {
  if (inode == 0) return 0;
  if (preferred != 0 && MountNamespaceOf(preferred) == inode) return preferred;
  std::error_code error;
  std::filesystem::directory_iterator at("/proc", error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    uint32_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    if (MountNamespaceOf(pid) == inode) return pid;
  }
  return 0;
}

}  // namespace stackreel::symfiles
