// Records for what was there before the recording began, as the kernel would have written them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/build_id.h"
#include "base/error.h"
#include "perfdata/record.h"

namespace stackreel::record {

using EmitRecord = std::function<Status(const perfdata::Record&)>;

// Build-ids of files, each read once.
class BuildIdReader {
 public:
  // Of the file that `path` is in the mount namespace of `pid` (0: ours). Nothing if it cannot be
  // read or has none.
  std::optional<BuildId> Read(uint32_t pid, const std::string& path);

 private:
  std::map<std::pair<std::string, uint64_t>, std::optional<BuildId>>
      known_;  // by path, device+inode
};

// What stands in the list of a process's mappings but not in a file, as the kernel names it in
// MMAP2 records: "" is "//anon".
std::string MappingName(const std::string& proc_path);

// FORK and COMM of the process and each of its threads, MMAP2 of its executable mappings (of all
// with `data_mappings`). A process that ends meanwhile gives as many as could be read.
Status SynthesizeProcess(uint32_t pid, bool data_mappings, BuildIdReader& build_ids,
                         const EmitRecord& emit);

// NAMESPACES of each thread of a process, those that this user may see; 0 for the others.
Status SynthesizeNamespaces(uint32_t pid, const EmitRecord& emit);
// CGROUP of every control group in the hierarchy that perf events know, given the text of
// /proc/mounts.
Status SynthesizeCgroups(const std::string& mounts, const EmitRecord& emit);

// The kernel and its modules as MMAP records. `kernel` has nothing where kallsyms shows no
// addresses to this user.
struct KernelModule {
  std::string name;
  uint64_t address = 0, size = 0;
  std::string path;  // of the .ko file; "[name]" if there is none
  std::optional<BuildId> build_id;
};
struct KernelImage {
  uint64_t text_start = 0, text_end = 0;  // _text or _stext, and _etext
  std::string reference_symbol;           // "_text" or "_stext"
  std::optional<BuildId> build_id;
  std::vector<KernelModule> modules;
};
struct KernelFolders {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string modules = "/lib/modules";
};
Result<KernelImage> ReadKernelImage(const KernelFolders& folders = {});
Status SynthesizeKernel(const KernelImage& kernel, const EmitRecord& emit);

// The build-id in the bytes of a notes file (/sys/kernel/notes, /sys/module/M/notes/…).
std::optional<BuildId> BuildIdOfNotes(ByteView notes);

}  // namespace stackreel::record
