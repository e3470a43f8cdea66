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
#include "os/bpf_programs.h"
#include "os/pointer_authentication.h"
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

// What the kernel says of a thread's masks and keys, as os::ReadPtrAuthFile does.
using PtrAuthReader = std::function<Result<os::PointerAuthentication>(uint32_t pid, uint32_t tid)>;

struct ProcessFacts {
  bool data_mappings = false;  // mappings that are not executable too
  // What os::LearnPointerAuthentication says of this machine.
  std::optional<os::PointerAuthentication> pointer_authentication;
  PtrAuthReader ptr_auth;  // null: this kernel does not say
};
// What was not there to be read of a process.
struct Unread {
  bool mappings = false;  // it is another user's
  bool masks = false;     // as the kernel says them: asked of the CPU instead
};
// FORK and COMM of the process and each of its threads, MMAP2 of its executable mappings, its mask
// where the machine has pointer authentication: as the kernel says it, for further threads only
// where theirs is another; else as the CPU does. A process that ends meanwhile gives as many as
// could be read.
Result<Unread> SynthesizeProcess(uint32_t pid, const ProcessFacts& wanted, BuildIdReader& build_ids,
                                 const EmitRecord& emit);

// The side-band record of a process's mask (perfdata/pac_mask.h), in the form that perf passes
// over.
perfdata::Record MakeMaskRecord(const perfdata::PacMask& mask);
// One of a process without a time, as all that is synthesised. Both masks 0: a program of 32 bits,
// whose pointers hold no codes.
perfdata::PacMask MaskOfMachine(uint32_t pid, uint64_t insn_mask, uint64_t data_mask);
// The same of a process that runs the program in the file `program`, on a machine with pointer
// authentication. Nothing if that cannot be read, or is no ELF file.
std::optional<perfdata::Record> MaskOfProgram(uint32_t pid, const std::string& program,
                                              const os::PointerAuthentication& machine);

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
struct KernelSymbol {
  uint64_t address = 0;
  std::string name;
};
struct KernelImage {
  uint64_t text_start = 0, text_end = 0;  // _text or _stext, and _etext
  std::string reference_symbol;           // "_text" or "_stext"
  std::optional<BuildId> build_id;
  std::vector<KernelModule> modules;
  std::vector<KernelSymbol> bpf_symbols;  // what kallsyms puts into "[bpf]", by address
};
struct KernelFolders {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string modules = "/lib/modules";
};
Result<KernelImage> ReadKernelImage(const KernelFolders& folders = {});
Status SynthesizeKernel(const KernelImage& kernel, const EmitRecord& emit);
// KSYMBOL of each function of these programs, BPF_EVENT of each program, and KSYMBOL of the
// trampolines and dispatchers that kallsyms names.
Status SynthesizeBpf(const KernelImage& kernel, const std::vector<os::BpfProgram>& programs,
                     const EmitRecord& emit);

// The build-id in the bytes of a notes file (/sys/kernel/notes, /sys/module/M/notes/…).
std::optional<BuildId> BuildIdOfNotes(ByteView notes);

}  // namespace stackreel::record
