#include "symfiles/kernel_files.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/memory_io.h"
#include "elf/compression.h"
#include "os/file.h"
#include "os/proc.h"

namespace stackreel::symfiles {

namespace {

constexpr const char* kKallsymsFile = "/proc/kallsyms";

std::optional<BuildId> RunningKernelBuildId() {
  const auto notes = os::ReadTextFile("/sys/kernel/notes", size_t{1} << 20);
  if (!notes) return std::nullopt;
  return elf::FindBuildIdNote(AsBytes(*notes), kNativeEndian);
}

std::string RunningRelease() {
  utsname name = {};
  return uname(&name) == 0 ? name.release : "";
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// A text that stays as it is: mapped, or read where it has no size (files of /proc, pipes).
Result<FileImagePtr> OpenText(const std::string& path) {
  if (auto mapped = os::MapFile(path); mapped && !(*mapped)->bytes().empty()) return mapped;
  TRY_ASSIGN(std::string text, os::ReadTextFile(path));
  return std::make_shared<TextImage>(std::move(text), path);
}

// A kernel module as it lies on disk, decompressed.
Result<FileImagePtr> OpenKo(const std::string& path) {
  TRY_ASSIGN(FileImagePtr file, os::MapFile(path));
  Result<std::vector<uint8_t>> bytes = std::vector<uint8_t>();
  if (path.ends_with(".xz")) {
    bytes = elf::DecompressXz(file->bytes());
  } else if (path.ends_with(".zst")) {
    bytes = elf::DecompressZstd(file->bytes());
  } else if (path.ends_with(".gz")) {
    bytes = elf::DecompressGzip(file->bytes());
  } else {
    return file;
  }
  if (!bytes) return Fail(std::move(bytes.error()).At(path));
  return std::make_shared<MemoryImage>(std::move(*bytes), path);
}

}  // namespace

bool HasLinesOf(std::string_view kallsyms, std::string_view module) {
  return kallsyms.find(fmt::format("[{}]", module)) != std::string_view::npos;
}

bool HidesAddresses(std::string_view kallsyms) {
  while (!kallsyms.empty()) {
    const std::string_view line = TakeLine(kallsyms);
    const std::string_view address = line.substr(0, line.find(' '));
    if (address.find_first_not_of('0') != std::string_view::npos) return false;
  }
  return true;
}

bool KernelFiles::IsRunningKernel(const BuildId& kernel, Reasons& reasons) const {
  const std::optional<BuildId> running = RunningKernelBuildId();
  if (!kernel.empty() && running) {
    if (running->Matches(kernel)) return true;
    reasons.Add("running kernel: " + DescribeMismatch(kernel, running));
    return false;
  }
  const std::string& recorded = search_.options().os_release;
  const std::string release = RunningRelease();
  if (!recorded.empty() && recorded == release) return true;
  reasons.Add(recorded.empty()
                  ? "the recording does not say which kernel ran; --kallsyms names its symbols"
                  : fmt::format("recorded on kernel {}, running is {}", recorded, release));
  return false;
}

FileImagePtr KernelFiles::Kallsyms(const BuildId& kernel, bool guest, Reasons& reasons) {
  if (!asked_ || asked_->kernel != kernel || asked_->guest != guest) {
    asked_ = Asked{kernel, guest, {}, {}};
    const SearchOptions& options = search_.options();
    std::vector<std::string> files;
    if (!options.kallsyms.empty()) {
      files.push_back(options.kallsyms);
    } else {
      if (!kernel.empty()) files.push_back(CachePath(options.buildid_dir, kernel, "kallsyms"));
      if (!guest && IsRunningKernel(kernel, asked_->reasons)) files.emplace_back(kKallsymsFile);
    }
    for (const std::string& file : files) {
      auto image = OpenText(file);
      if (!image) {
        if (image.error().kind != ErrorKind::kNotFound || file == options.kallsyms) {
          asked_->reasons.Add(image.error().ToString());
        }
      } else if (HidesAddresses(AsText((*image)->bytes()))) {
        asked_->reasons.Add(file + ": addresses are hidden (kernel.kptr_restrict; run as root)");
      } else {
        asked_->kallsyms = std::move(*image);
        break;
      }
    }
  }
  if (asked_->kallsyms == nullptr && !asked_->reasons.empty()) {
    reasons.Add(asked_->reasons.ToString());
  }
  return asked_->kallsyms;
}

std::optional<FoundFile> KernelFiles::FindVmlinux(const BuildId& kernel, Reasons& reasons) {
  const SearchOptions& options = search_.options();
  if (!options.vmlinux.empty()) {
    if (auto found = ElfSearch::OpenMatching(options.vmlinux, kernel, reasons)) return found;
    if (reasons.empty()) reasons.Add(options.vmlinux + ": no such file");
    return std::nullopt;
  }
  // Without a build-id nothing shows that a file is the recorded kernel.
  if (kernel.empty()) return std::nullopt;
  if (auto found = search_.FindByBuildId(kernel, ".debug", "vmlinux", reasons)) return found;
  const std::string& release = options.os_release;
  if (release.empty()) return std::nullopt;
  for (const std::string& root : search_.RootsOf(0)) {
    for (const std::string& path :
         {"/boot/vmlinux-" + release, "/usr/lib/debug/boot/vmlinux-" + release,
          "/lib/modules/" + release + "/build/vmlinux",
          "/usr/lib/debug/lib/modules/" + release + "/vmlinux"}) {
      if (auto found = ElfSearch::OpenMatching(root + path, kernel, reasons)) return found;
    }
  }
  return std::nullopt;
}

symbolize::ModuleFiles KernelFiles::Kernel(const session::Module& module) {
  symbolize::ModuleFiles files;
  Reasons reasons;
  const BuildId& kernel =
      module.key.build_id.empty() ? search_.options().kernel_build_id : module.key.build_id;
  const bool guest = module.key.kind == session::ModuleKind::kGuestKernel;
  files.kallsyms = Kallsyms(kernel, guest, reasons);
  Reasons no_vmlinux;
  if (auto vmlinux = FindVmlinux(kernel, no_vmlinux)) {
    files.main = std::move(vmlinux->image);
  } else if (!no_vmlinux.empty()) {
    const SearchOptions& options = search_.options();
    reasons.Add(no_vmlinux.ToString());
    if (!options.vmlinux.empty() && options.notice) {
      options.notice("--vmlinux is not used: " + no_vmlinux.ToString());
    }
  }
  if (files.kallsyms == nullptr && files.main == nullptr) {
    files.why = module.path() + ": " + reasons.ToString();
  }
  return files;
}

std::optional<FoundFile> KernelFiles::FindKo(const session::Module& module, Reasons& reasons) {
  if (!module.path().starts_with('/')) return std::nullopt;
  for (const std::string& root : search_.RootsOf(0)) {
    const std::string path = root + module.path();
    auto file = OpenKo(path);
    if (!file) {
      if (file.error().kind != ErrorKind::kNotFound) reasons.Add(file.error().ToString());
      continue;
    }
    const auto image = elf::Image::Parse((*file)->bytes());
    if (!image) {
      reasons.Add(path + ": " + image.error().message);
      continue;
    }
    const std::optional<BuildId> on_disk = image->ReadBuildId();
    if (!module.key.build_id.empty() && (!on_disk || !on_disk->Matches(module.key.build_id))) {
      reasons.Add(path + ": " + DescribeMismatch(module.key.build_id, on_disk));
      continue;
    }
    return FoundFile{std::move(*file), path};
  }
  return search_.FindByBuildId(module.key.build_id, "", "elf", reasons);
}

symbolize::ModuleFiles KernelFiles::KernelModule(const session::Module& module) {
  symbolize::ModuleFiles files;
  Reasons reasons;
  const FileImagePtr kallsyms =
      Kallsyms(search_.options().kernel_build_id, /*guest=*/false, reasons);
  if (kallsyms != nullptr) {
    if (HasLinesOf(AsText(kallsyms->bytes()), symbolize::KallsymsModule(module))) {
      files.kallsyms = kallsyms;
    } else {
      reasons.Add("kallsyms has no symbols of this module");
    }
  }
  if (auto found = FindKo(module, reasons)) {
    if (auto debug = search_.FindDebug(&*found, module.key.build_id, 0, reasons)) {
      files.debug = std::move(debug->image);
    }
    files.main = std::move(found->image);
  }
  if (files.kallsyms == nullptr && files.main == nullptr) {
    files.why = module.path() + ": " + reasons.ToString();
  }
  return files;
}

symbolize::ModuleFiles KernelFiles::Vdso(const session::Module& module) {
  symbolize::ModuleFiles files;
  Reasons reasons;
  const BuildId& id = module.key.build_id;
  if (auto found = search_.FindByBuildId(id, ".debug", "vdso", reasons)) {
    files.main = std::move(found->image);
    return files;
  }
  std::vector<uint8_t> own = os::ReadOwnVdso();
  const auto image = elf::Image::Parse(own);
  const std::optional<BuildId> own_id = image ? image->ReadBuildId() : std::nullopt;
  const bool is_native = module.path() == "[vdso]";  // else of 32-bit tasks
  const bool same = id.empty()
                        ? is_native && IsRunningKernel(search_.options().kernel_build_id, reasons)
                        : own_id && own_id->Matches(id);
  if (image && same) {
    files.main = std::make_shared<MemoryImage>(std::move(own), "[vdso]");
    return files;
  }
  if (!id.empty()) reasons.Add("this machine's vDSO: " + DescribeMismatch(id, own_id));
  if (id.empty() && !is_native) reasons.Add("its build-id is not in the recording");
  files.why = module.path() + ": " + reasons.ToString();
  return files;
}

}  // namespace stackreel::symfiles
