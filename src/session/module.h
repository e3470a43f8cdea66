// A module: one binary (or one kind of memory) that mappings refer to.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/build_id.h"
#include "elf/image.h"

namespace stackreel::session {

using ModuleId = uint32_t;
inline constexpr ModuleId kNoModule = UINT32_MAX;

// The name under which a recording has the code of an agent of ours (`trace`) in its process:
// memory that has no file, and no symbols but this.
inline constexpr char kAgentMapping[] = "[stackreel agent]";

enum class ModuleKind : uint8_t {
  kFile,          // an ELF file
  kKernel,        // vmlinux, by kallsyms
  kKernelModule,  // a .ko, or a BPF program's symbol
  kGuestKernel,
  kVdso,
  kVsyscall,
  kJit,        // anonymous executable memory: a perf map may name it
  kJitDump,    // jit-PID.dump: the code of a JIT compiler, by JitDump; svma is place in that file
  kAnonymous,  // //anon, [heap], [stack], /memfd:… and the like
};

// `path` is as the recording has it, without " (deleted)". Two modules differ if path, build-id or
// kind do, or the mount namespace that the path is in. For kJit and kJitDump the owner is `pid`, so
// that its perf map is found.
struct ModuleKey {
  ModuleKind kind = ModuleKind::kFile;
  std::string path;
  BuildId build_id;
  uint32_t pid = 0;
  uint64_t mount_namespace = 0;  // its inode number (NAMESPACES record); 0: not recorded
  friend auto operator<=>(const ModuleKey&, const ModuleKey&) = default;
};

struct Module {
  ModuleKey key;
  bool deleted = false;  // the path ended in " (deleted)"
  // kKernelModule that is one symbol, named by its path (KSYMBOL record): a BPF program, a
  // trampoline. Its svmas count from its start.
  bool ksymbol = false;
  // The process that mapped it first: whose /proc/PID/root holds the file.
  uint32_t first_pid = 0;
  uint64_t mount_namespace = 0;  // of that process: inode number; 0: not recorded
  // Kernels and modules: where they are loaded. Their svmas are avmas, as kallsyms has them; who
  // looks into vmlinux or a .ko takes off what it was moved by.
  Avma kernel_start;
  // `[kernel.kallsyms]_stext`: the name of the reference symbol, and the address it had when it
  // was recorded. 0: not known (kptr_restrict).
  std::string reference_symbol;
  uint64_t reference_address = 0;

  [[nodiscard]] const std::string& path() const { return key.path; }
  // As perf names it: with " (deleted)".
  [[nodiscard]] std::string name() const { return deleted ? key.path + " (deleted)" : key.path; }
  [[nodiscard]] bool is_kernel() const {
    return key.kind == ModuleKind::kKernel || key.kind == ModuleKind::kKernelModule ||
           key.kind == ModuleKind::kGuestKernel;
  }
};

// The PT_LOAD segments of a file module, which give svma from file offset. Unset: not known, then
// svma is file offset, which is right for position-independent files with equal offsets only.
struct LoadSegment {
  uint64_t offset = 0, file_size = 0, vaddr = 0, mem_size = 0;
  bool executable = false;
};
std::vector<LoadSegment> LoadSegmentsOf(const elf::Image& image);

// The segment that a mapping of file bytes [offset, offset + length) shows: the one that overlaps
// most, of those that are executable as the mapping is. A mapping begins at a page, a segment need
// not, and their vaddr - offset may differ: so avma - svma is never taken as start - offset. Null
// if none overlaps.
const LoadSegment* SegmentOfMapping(const std::vector<LoadSegment>& segments, FileOffset offset,
                                    uint64_t length, bool executable);
// The one segment of data that holds a byte of the file; null if none does, or several do.
const LoadSegment* DataSegmentAt(const std::vector<LoadSegment>& segments, FileOffset offset);

// What a user mapping's file name says.
struct ModuleName {
  ModuleKey key;  // without a build-id
  bool deleted = false;
};
ModuleName ClassifyMapping(std::string_view filename, uint32_t pid, bool executable,
                           uint32_t map_flags);

// PROT_EXEC of mmap(2).
bool IsExecutable(uint32_t prot);

}  // namespace stackreel::session
