// What control groups and namespaces there are.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "os/file.h"
#include "os/proc.h"
#include "record/records.h"
#include "record/synthesize.h"

namespace stackreel::record {

namespace {

namespace fs = std::filesystem;
using perfdata::RecordType;

// Where the hierarchy that perf events know is mounted: the one with the controller perf_event,
// else the unified one; "" if there is none. Lines of proc(5), mounts: device, folder, type,
// options.
std::string FindGroupFolder(const std::string& mounts) {
  std::string unified;
  std::istringstream lines(mounts);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string device, folder, type, options;
    words >> device >> folder >> type >> options;
    if (type == "cgroup" && ("," + options + ",").find(",perf_event,") != std::string::npos) {
      return folder;
    }
    if (type == "cgroup2" && unified.empty()) unified = folder;
  }
  return unified;
}

// The number that samples have: the content of the folder's file handle (Linux 5.5), which on
// 64-bit machines is the inode number too.
std::optional<uint64_t> GroupId(const std::string& folder) {
  struct {
    struct file_handle head;
    std::array<unsigned char, sizeof(uint64_t)> bytes;
  } handle = {};
  handle.head.handle_bytes = sizeof(handle.bytes);
  int mount = 0;
  if (name_to_handle_at(AT_FDCWD, folder.c_str(), &handle.head, &mount, 0) == 0 &&
      handle.head.handle_bytes == sizeof(uint64_t)) {
    uint64_t id = 0;
    std::memcpy(&id, reinterpret_cast<const unsigned char*>(&handle) + sizeof(struct file_handle),
                sizeof(id));
    return id;
  }
  struct stat info = {};
  if (stat(folder.c_str(), &info) != 0) return std::nullopt;
  return info.st_ino;
}

}  // namespace

Status SynthesizeCgroups(const std::string& mounts, const EmitRecord& emit) {
  const std::string root = FindGroupFolder(mounts);
  if (root.empty()) return {};
  const auto emit_one = [&](const std::string& folder) -> Status {
    const std::optional<uint64_t> id = GroupId(folder);
    if (!id) return {};  // it has gone
    const std::string path = folder.substr(root.size());
    return emit(MakeRecord(RecordType::kCgroup, 0,
                           perfdata::Cgroup{.id = *id, .path = path.empty() ? "/" : path}));
  };
  TRY(emit_one(root));
  std::error_code error;
  fs::recursive_directory_iterator entry(root, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code ignored;
    if (entry->is_directory(ignored) && !entry->is_symlink(ignored)) {
      TRY(emit_one(entry->path().string()));
    }
  }
  return {};
}

Status SynthesizeNamespaces(uint32_t pid, const EmitRecord& emit) {
  // In the order of perf_event.h.
  constexpr std::array<const char*, 7> kNames = {"net",  "uts", "ipc",   "pid",
                                                 "user", "mnt", "cgroup"};
  for (const uint32_t tid : os::ListThreads(pid)) {
    perfdata::Namespaces namespaces;
    namespaces.pid = pid;
    namespaces.tid = tid;
    bool any = false;
    for (const char* name : kNames) {
      struct stat info = {};
      const bool known =
          stat(fmt::format("/proc/{}/task/{}/ns/{}", pid, tid, name).c_str(), &info) == 0;
      any |= known;
      namespaces.links.push_back({.dev = info.st_dev, .ino = info.st_ino});
    }
    if (!any) continue;  // another user's, or it has ended
    TRY(emit(MakeRecord(RecordType::kNamespaces, 0, std::move(namespaces))));
  }
  return {};
}

}  // namespace stackreel::record
