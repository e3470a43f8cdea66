#include "tracer/target_modules.h"

#include <elf.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "os/file.h"
#include "session/module.h"
#include "symfiles/symfiles.h"

namespace stackreel::tracer {

namespace {

constexpr std::string_view kDeleted = " (deleted)";

struct FileIdentity {
  uint32_t maj = 0, min = 0;
  uint64_t inode = 0;
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};
FileIdentity IdentityOf(const os::ProcMapping& mapping) {
  return {mapping.maj, mapping.min, mapping.ino};
}
// Of overlays the devices differ between maps and stat(2), so that the inode has to do.
bool IsSameFile(const std::string& path, const FileIdentity& mapped) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && info.st_ino == mapped.inode;
}

FileIdentity ProgramOf(uint32_t pid) {
  struct stat info = {};
  if (stat(fmt::format("/proc/{}/exe", pid).c_str(), &info) != 0) return {};
  return {major(info.st_dev), minor(info.st_dev), info.st_ino};
}

// A path that leads to the very file that is mapped.
std::string FindFile(uint32_t pid, const os::ProcMapping& mapping, bool is_program,
                     std::string& why_not) {
  if (is_program) return fmt::format("/proc/{}/exe", pid);
  if (!mapping.path.ends_with(kDeleted)) {
    std::string path = fmt::format("/proc/{}/root{}", pid, mapping.path);
    if (IsSameFile(path, IdentityOf(mapping))) return path;
  }
  // Root may look at what is mapped, whatever its name is now.
  std::string path = fmt::format("/proc/{}/map_files/{:x}-{:x}", pid, mapping.start, mapping.end);
  if (IsSameFile(path, IdentityOf(mapping))) return path;
  why_not = "its file was replaced or removed since the program mapped it";
  return "";
}

// Of a file at a path that leads to it.
uint64_t VersionOf(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return 0;
  constexpr uint64_t kSecond = 1'000'000'000;
  return (info.st_ino << 32) ^ (static_cast<uint64_t>(info.st_mtim.tv_sec) * kSecond +
                                static_cast<uint64_t>(info.st_mtim.tv_nsec));
}

// avma - svma, from the executable segment that this mapping is of.
std::optional<uint64_t> BiasOf(const elf::Image& image, const os::ProcMapping& mapping) {
  for (const elf::Segment& segment : image.segments()) {
    if (segment.type != PT_LOAD || !segment.executable()) continue;
    const uint64_t page = segment.offset & ~uint64_t{4095};
    if (mapping.offset < page || mapping.offset >= segment.offset + segment.file_size) continue;
    return mapping.start - (segment.vaddr - segment.offset + mapping.offset);
  }
  return std::nullopt;
}

// Whether a file is mapped from its first segment on where that puts it, as a loader does. Its code
// may be mapped elsewhere besides, in part: V8 does that with its own.
bool IsLoadedAt(uint64_t bias, const elf::Image& image, const FileIdentity& file,
                const std::vector<os::ProcMapping>& maps) {
  constexpr uint64_t kInPage = 4095;
  const elf::Segment* first = nullptr;
  for (const elf::Segment& segment : image.segments()) {
    if (segment.type != PT_LOAD || segment.file_size == 0) continue;
    if (first == nullptr || segment.vaddr < first->vaddr) first = &segment;
  }
  if (first == nullptr) return false;
  const uint64_t begin = (first->vaddr + bias) & ~kInPage;
  return std::ranges::any_of(maps, [&](const os::ProcMapping& mapping) {
    return IdentityOf(mapping) == file && mapping.start <= begin && begin < mapping.end &&
           mapping.offset + (begin - mapping.start) == (first->offset & ~kInPage);
  });
}

// Sets what the file tells.
void Place(TargetModule& module, const os::ProcMapping& code,
           const std::vector<os::ProcMapping>& maps) {
  const auto image = elf::Image::Parse(module.file->bytes());
  if (!image) {
    module.why_not = "it is not an ELF file";
    return;
  }
  if (image->machine() != EM_X86_64 || image->elf_class() != elf::Class::k64) {
    module.why_not = "it is not for 64-bit x86";
    return;
  }
  const auto bias = BiasOf(*image, code);
  if (!bias) {
    module.why_not = "its code is not mapped as its file says";
    return;
  }
  if (!IsLoadedAt(*bias, *image, IdentityOf(code), maps)) {
    module.why_not = "only some of its file is mapped there";
    return;
  }
  module.bias = *bias;
  uint64_t first = UINT64_MAX;
  uint64_t end = 0;
  for (const elf::Segment& segment : image->segments()) {
    if (segment.type != PT_LOAD) continue;
    first = std::min(first, segment.vaddr);
    end = std::max(end, segment.vaddr + segment.mem_size);
  }
  module.range = {Avma((first + *bias) & ~uint64_t{4095}),
                  Avma((end + *bias + 4095) & ~uint64_t{4095})};
  if (module.range.end <= module.range.start || module.range.size() > patch::kReach) {
    module.why_not = "its segments lie too far apart";
  }
  module.build_id = image->ReadBuildId().value_or(BuildId());
}

}  // namespace

Result<std::vector<TargetModule>> ReadModules(uint32_t pid,
                                              const std::vector<os::ProcMapping>& maps) {
  const uint64_t program = ProgramOf(pid).inode;
  std::vector<TargetModule> modules;
  std::map<FileIdentity, uint64_t> seen;  // → where it was seen last
  for (const os::ProcMapping& mapping : maps) {
    if ((mapping.prot & PROT_EXEC) == 0 || mapping.ino == 0 || !mapping.path.starts_with('/') ||
        (mapping.flags & MAP_SHARED) != 0) {
      continue;
    }
    // One library is one module, however many mappings its code has.
    const FileIdentity identity = IdentityOf(mapping);
    if (const auto at = seen.find(identity); at != seen.end() && mapping.start < at->second) {
      continue;
    }
    TargetModule module;
    module.path = mapping.path;
    if (module.path.ends_with(kDeleted)) {
      module.path.resize(module.path.size() - kDeleted.size());
    }
    module.is_program = mapping.ino == program;
    module.range = {Avma(mapping.start), Avma(mapping.end)};
    const std::string path = FindFile(pid, mapping, module.is_program, module.why_not);
    if (!path.empty()) {
      module.version = VersionOf(path);
      if (auto file = os::MapFile(path)) {
        module.file = std::move(*file);
        Place(module, mapping, maps);
      } else {
        module.why_not = file.error().ToString();
      }
    }
    seen[identity] = module.range.end.value;
    modules.push_back(std::move(module));
  }
  std::ranges::stable_partition(modules, [](const auto& module) { return module.is_program; });
  return modules;
}

symbolize::ModuleFiles FilesOf(const TargetModule& module, uint32_t pid) {
  symfiles::SearchOptions search;
  search.proc_root = true;
  search.debuginfod = false;  // nobody waits for a network while a program is held
  const auto files = symfiles::MakeFileProvider(search);
  session::Module wanted;
  wanted.key.path = module.path;
  wanted.key.build_id = module.build_id;
  wanted.first_pid = pid;
  return files->FilesOf(wanted);
}

Status ReadCode(TargetModule& module, uint32_t pid, Executor& executor) {
  if (module.code != nullptr) return {};
  if (!module.why_not.empty()) {
    return Fail(ErrorKind::kUnsupported,
                fmt::format("{} cannot be traced: {}", module.path, module.why_not));
  }
  FileImagePtr symbols = FilesOf(module, pid).debug;
  auto code = ModuleCode::Read(module.file, symbols, executor);
  if (!code) {
    module.why_not = code.error().message;
    return Fail(std::move(code.error()));
  }
  module.code = std::move(*code);
  return {};
}

}  // namespace stackreel::tracer
