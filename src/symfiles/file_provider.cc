#include <fmt/format.h>

#include <utility>

#include "base/memory_io.h"
#include "os/file.h"
#include "symfiles/elf_search.h"
#include "symfiles/kernel_files.h"
#include "symfiles/mount_namespace.h"
#include "symfiles/perf_map.h"
#include "symfiles/symfiles.h"

namespace stackreel::symfiles {

namespace {

using session::Module;
using session::ModuleKind;
using symbolize::ModuleFiles;

bool HasDwarf(const FoundFile& file) {
  const auto image = elf::Image::Parse(file.image->bytes());
  return image && (image->FindSection(".debug_info") != nullptr ||
                   image->FindSection(".zdebug_info") != nullptr);
}

class FileProvider : public symbolize::ModuleFileProvider {
 public:
  explicit FileProvider(const SearchOptions& options)
      : search_(std::make_shared<ElfSearch>(options)), kernel_(*search_) {}

  ModuleFiles FilesOf(const Module& module) override {
    switch (module.key.kind) {
      case ModuleKind::kFile:
        return Binary(module);
      case ModuleKind::kKernel:
      case ModuleKind::kGuestKernel:
        return kernel_.Kernel(module);
      case ModuleKind::kKernelModule:
        return kernel_.KernelModule(module);
      case ModuleKind::kVdso:
        return kernel_.Vdso(module);
      case ModuleKind::kVsyscall:
        return Nothing(module, "has no file");
      case ModuleKind::kJit:
      case ModuleKind::kAnonymous:
        return PerfMap(module);
      case ModuleKind::kJitDump:
        return JitDump(module);
    }
    return {};
  }

 private:
  static ModuleFiles Nothing(const Module& module, const std::string& why) {
    ModuleFiles files;
    files.why = module.path() + ": " + why;
    return files;
  }

  // Whose /proc/PID/root has the module's files; 0: nobody's, they are this process's too.
  // `elsewhere` is set if they are in a namespace that nobody can show.
  uint32_t RootPid(const Module& module, bool& elsewhere) const {
    const uint64_t inode = module.mount_namespace;
    if (inode == 0) return search_->options().proc_root ? module.first_pid : 0;
    if (inode == MountNamespaceOf(0)) return 0;
    const uint32_t pid = ProcessInMountNamespace(inode, module.first_pid);
    elsewhere = pid == 0;
    return pid;
  }

  ModuleFiles Binary(const Module& module) {
    ModuleFiles files;
    Reasons reasons;
    const BuildId& id = module.key.build_id;
    bool elsewhere = false;
    const uint32_t pid = RootPid(module, elsewhere);
    // Nothing would show that this machine's file of that path is another.
    if (elsewhere && id.empty() && search_->options().symfs.empty()) {
      return Nothing(module, "was in a mount namespace that is gone");
    }
    const auto main = search_->FindMain(module.path(), id, pid, module.deleted, reasons);
    std::optional<FoundFile> debug;
    if (!main || !HasDwarf(*main)) {
      BuildId debug_id = id;
      if (main && debug_id.empty()) {
        if (const auto image = elf::Image::Parse(main->image->bytes())) {
          debug_id = image->ReadBuildId().value_or(BuildId());
        }
      }
      debug = search_->FindDebug(main ? &*main : nullptr, debug_id, pid, reasons);
    }
    if (main) files.main = main->image;
    if (debug) files.debug = debug->image;
    if (!main && !debug) {
      files.why =
          module.path() + ": " + (reasons.empty() ? std::string("not found") : reasons.ToString());
    }
    std::vector<std::string> paths;
    if (debug) paths.push_back(debug->path);
    if (main) paths.push_back(main->path);
    files.alt_file = [search = search_, paths](std::string_view name, ByteView alt_id) {
      return search->FindAlt(paths.empty() ? "" : paths.front(), name, BuildId(alt_id));
    };
    files.dwo_file = [paths](std::string_view name, std::string_view comp_dir) {
      return ElfSearch::FindDwo(paths, name, comp_dir);
    };
    return files;
  }

  ModuleFiles JitDump(const Module& module) {
    bool elsewhere = false;
    const uint32_t pid = RootPid(module, elsewhere);
    if (elsewhere) return Nothing(module, "was in a mount namespace that is gone");
    std::string why = "not found";
    for (const std::string& root : search_->RootsOf(pid)) {
      const std::string path = root + module.path();
      const Status ours = CheckOwner(path);
      if (!ours && ours.error().kind != ErrorKind::kNotFound) why = ours.error().message;
      if (!ours) continue;
      auto file = os::MapFile(path);
      if (!file) return Nothing(module, file.error().ToString());
      ModuleFiles files;
      files.main = std::move(*file);
      return files;
    }
    return Nothing(module, why);
  }

  static ModuleFiles PerfMap(const Module& module) {
    auto text = ReadPerfMap(module.key.pid != 0 ? module.key.pid : module.first_pid);
    if (!text) return Nothing(module, text.error().message);
    ModuleFiles files;
    files.perf_map = std::make_shared<TextImage>(std::move(*text), "perf map");
    return files;
  }

  std::shared_ptr<ElfSearch> search_;  // what FilesOf hands out keeps it alive too
  KernelFiles kernel_;
};

}  // namespace

std::unique_ptr<symbolize::ModuleFileProvider> MakeFileProvider(const SearchOptions& options) {
  return std::make_unique<FileProvider>(options);
}

}  // namespace stackreel::symfiles
