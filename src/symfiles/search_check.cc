#include <errno.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "elf/image.h"
#include "os/file.h"
#include "symfiles/kernel_files.h"
#include "symfiles/symfiles.h"

namespace stackreel::symfiles {

namespace {

Status CheckFolder(const std::string& path, const char* option) {
  const std::string what = fmt::format("{}: cannot look in", option);
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return Fail(os::ErrnoError(errno, what, path));
  if (!S_ISDIR(info.st_mode)) return Fail(os::ErrnoError(ENOTDIR, what, path));
  if (access(path.c_str(), X_OK) != 0) return Fail(os::ErrnoError(errno, what, path));
  return {};
}

// Its bytes; null if it is no regular file.
Result<FileImagePtr> OpenNamed(const std::string& path, const char* option) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return nullptr;
  }
  auto file = os::MapFile(path);
  if (!file) {
    file.error().message = fmt::format("{}: {}", option, file.error().message);
    return Fail(std::move(file.error()));
  }
  return file;
}

// "ffffffff81000000 T _stext".
bool IsSymbolLine(std::string_view line) {
  const size_t digits = std::min(line.find_first_not_of("0123456789abcdefABCDEF"), line.size());
  return digits != 0 && line.size() > digits + 3 && line[digits] == ' ' && line[digits + 2] == ' ';
}

bool HasSymbolLine(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (IsSymbolLine(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

Status CheckKallsyms(const std::string& path) {
  TRY_ASSIGN(const FileImagePtr file, OpenNamed(path, "--kallsyms"));
  // Files of /proc have no size.
  if (file == nullptr || (file->bytes().empty() && path.starts_with("/proc/"))) return {};
  constexpr size_t kLookedAt = size_t{1} << 20;
  const std::string_view text = AsText(file->bytes());
  if (!HasSymbolLine(text.substr(0, kLookedAt))) {
    return Fail(Error(ErrorKind::kDamaged,
                      fmt::format("--kallsyms: no symbols in {}: a line has an address, a letter "
                                  "and a name",
                                  path))
                    .WithCure("a copy of /proc/kallsyms of the recorded machine, read as root"));
  }
  if (HidesAddresses(text)) {
    return Fail(
        Error(ErrorKind::kDamaged, fmt::format("--kallsyms: all addresses in {} are 0", path))
            .WithCure("read /proc/kallsyms as root, or with kernel.kptr_restrict=0"));
  }
  return {};
}

Status CheckVmlinux(const std::string& path) {
  TRY_ASSIGN(const FileImagePtr file, OpenNamed(path, "--vmlinux"));
  if (file == nullptr) return Fail(ErrorKind::kNotFound, "--vmlinux: not a regular file: " + path);
  const auto image = elf::Image::Parse(file->bytes());
  if (image) return {};
  return Fail(
      Error(ErrorKind::kDamaged, fmt::format("--vmlinux: {}: {}", path, image.error().message))
          .WithCure("an uncompressed vmlinux; scripts/extract-vmlinux of the kernel's "
                    "source makes one from a vmlinuz"));
}

}  // namespace

Status CheckSearchOptions(const SearchOptions& options) {
  for (const std::string& folder : options.symfs) TRY(CheckFolder(folder, "--symfs"));
  for (const std::string& folder : options.debug_dirs) {
    const Status here = CheckFolder(folder, "--debug-dir");
    const bool below_a_root =
        std::ranges::any_of(options.symfs, [&folder](const std::string& root) {
          return CheckFolder(root + "/" + folder, "--debug-dir").has_value();
        });
    if (!here && !below_a_root) return here;
  }
  if (!options.kallsyms.empty()) TRY(CheckKallsyms(options.kallsyms));
  if (!options.vmlinux.empty()) TRY(CheckVmlinux(options.vmlinux));
  return {};
}

}  // namespace stackreel::symfiles
