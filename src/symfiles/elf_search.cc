#include "symfiles/elf_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "os/file.h"

namespace stackreel::symfiles {

namespace fs = std::filesystem;

namespace {

std::string ShortHex(const BuildId& id) {
  constexpr size_t kShown = 16;
  const std::string hex = id.ToHex();
  return hex.size() <= kShown ? hex : hex.substr(0, kShown) + "…";
}

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash);
}

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// With links resolved; as it is if that fails.
std::string RealPath(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  return error ? path : real.string();
}

// ".build-id/ab/cdef…SUFFIX" under a debug folder.
std::string BuildIdPath(const std::string& folder, const BuildId& id, const char* suffix) {
  const std::string hex = id.ToHex();
  return fmt::format("{}/.build-id/{}/{}{}", folder, hex.substr(0, 2), hex.substr(2), suffix);
}

bool UsableId(const BuildId& id) { return id.bytes().size() >= 2; }

FileImagePtr MapIfThere(const std::string& path) {
  auto image = os::MapFile(path);
  return image ? std::move(*image) : nullptr;
}

}  // namespace

void Reasons::Add(std::string reason) {
  if (std::ranges::find(reasons_, reason) == reasons_.end()) reasons_.push_back(std::move(reason));
}

std::string Reasons::ToString() const { return fmt::format("{}", fmt::join(reasons_, "; ")); }

std::string DescribeMismatch(const BuildId& recorded, const std::optional<BuildId>& on_disk) {
  return on_disk ? fmt::format("build-id differs: recorded {}, on disk {}", ShortHex(recorded),
                               ShortHex(*on_disk))
                 : fmt::format("build-id differs: recorded {}, on disk none", ShortHex(recorded));
}

ElfSearch::ElfSearch(const SearchOptions& options) : options_(options) {
  if (options_.buildid_dir.empty()) options_.buildid_dir = DefaultBuildIdDir();
  for (std::string& root : options_.symfs) {
    while (root.ends_with('/')) root.pop_back();
  }
  if (!options_.debuginfod) return;
  if (auto client = Debuginfod::Open()) {
    debuginfod_ = std::move(*client);
  } else {
    debuginfod_problem_ = client.error().message;
  }
}

std::vector<std::string> ElfSearch::RootsOf(uint32_t pid) const {
  std::vector<std::string> roots = options_.symfs;
  if (pid != 0) roots.push_back(fmt::format("/proc/{}/root", pid));
  roots.emplace_back();
  return roots;
}

std::optional<FoundFile> ElfSearch::OpenMatching(const std::string& path, const BuildId& id,
                                                 Reasons& reasons) {
  auto file = os::MapFile(path);
  if (!file) {
    if (file.error().kind != ErrorKind::kNotFound) reasons.Add(file.error().ToString());
    return std::nullopt;
  }
  const auto image = elf::Image::Parse((*file)->bytes());
  if (!image) {
    Error error = image.error();
    error.file = path;
    reasons.Add(error.ToString());
    return std::nullopt;
  }
  if (!id.empty()) {
    const std::optional<BuildId> on_disk = image->ReadBuildId();
    if (!on_disk || !on_disk->Matches(id)) {
      reasons.Add(path + ": " + DescribeMismatch(id, on_disk));
      return std::nullopt;
    }
  }
  return FoundFile{std::move(*file), path};
}

std::optional<FoundFile> ElfSearch::FindByBuildId(const BuildId& id, const char* suffix,
                                                  const char* leaf, Reasons& reasons) {
  if (!UsableId(id)) return std::nullopt;
  for (const std::string& root : RootsOf(0)) {
    for (const std::string& folder : options_.debug_dirs) {
      if (auto found = OpenMatching(BuildIdPath(root + folder, id, suffix), id, reasons)) {
        return found;
      }
    }
  }
  return OpenMatching(CachePath(options_.buildid_dir, id, leaf), id, reasons);
}

// By the links of /proc/PID/exe and /proc/PID/map_files (proc(5)), which lead to the file itself,
// whatever became of its name. The latter may be followed by root only.
std::optional<FoundFile> ElfSearch::FindMapped(const std::string& path, const BuildId& id,
                                               uint32_t pid, Reasons& reasons) {
  const auto is_it = [&path](const fs::path& link) {
    std::error_code error;
    const std::string target = fs::read_symlink(link, error);
    return !error && (target == path || target == path + " (deleted)");
  };
  const fs::path proc = fmt::format("/proc/{}", pid);
  if (is_it(proc / "exe")) return OpenMatching(proc / "exe", id, reasons);
  std::error_code error;
  fs::directory_iterator link(proc / "map_files", error);
  for (; !error && link != fs::directory_iterator(); link.increment(error)) {
    if (is_it(link->path())) return OpenMatching(link->path(), id, reasons);
  }
  return std::nullopt;
}

std::optional<FoundFile> ElfSearch::FindMain(const std::string& path, const BuildId& id,
                                             uint32_t pid, bool deleted, Reasons& reasons) {
  if (deleted && pid != 0) {
    if (auto found = FindMapped(path, id, pid, reasons)) return found;
  }
  if (path.starts_with('/')) {
    for (const std::string& root : RootsOf(pid)) {
      if (auto found = OpenMatching(root + path, id, reasons)) return found;
    }
  }
  if (!deleted && pid != 0 && !id.empty()) {
    if (auto found = FindMapped(path, id, pid, reasons)) return found;
  }
  // A folder of files copied from the recorded machine, without its folders.
  for (const std::string& root : options_.symfs) {
    if (auto found = OpenMatching(root + "/" + BaseName(path), id, reasons)) return found;
  }
  if (auto found = FindByBuildId(id, "", "elf", reasons)) return found;
  return AskDebuginfod(Debuginfod::Kind::kExecutable, id, reasons);
}

std::optional<FoundFile> ElfSearch::FindDebug(const FoundFile* main, const BuildId& id,
                                              uint32_t pid, Reasons& reasons) {
  if (auto found = FindByBuildId(id, ".debug", "debug", reasons)) return found;
  if (main != nullptr) {
    const auto image = elf::Image::Parse(main->image->bytes());
    if (image) {
      if (auto found = FindByDebugLink(*main, *image, id, pid, reasons)) return found;
    }
  }
  return AskDebuginfod(Debuginfod::Kind::kDebuginfo, id, reasons);
}

// The places of the GDB manual, "Separate Debug Files".
std::optional<FoundFile> ElfSearch::FindByDebugLink(const FoundFile& main, const elf::Image& image,
                                                    const BuildId& id, uint32_t pid,
                                                    Reasons& reasons) {
  const auto link = image.ReadDebugLink();
  if (!link) return std::nullopt;
  const std::string name = BaseName(link->file_name);
  std::vector<std::string> candidates;
  for (const std::string& path : {main.path, RealPath(main.path)}) {
    const std::string folder = FolderOf(path);
    candidates.push_back(fmt::format("{}/{}", folder, name));
    candidates.push_back(fmt::format("{}/.debug/{}", folder, name));
    for (const std::string& root : RootsOf(pid)) {
      // A binary found below a root has its debug folders below it too.
      if (!folder.starts_with(root)) continue;
      const std::string inside = folder.substr(root.size());
      for (const std::string& debug : options_.debug_dirs) {
        candidates.push_back(fmt::format("{}{}{}/{}", root, debug, inside, name));
      }
    }
  }
  std::vector<std::string> tried;
  for (const std::string& path : candidates) {
    std::error_code error;
    if (std::ranges::find(tried, path) != tried.end()) continue;
    tried.push_back(path);
    if (fs::equivalent(path, main.path, error)) continue;  // a link to itself
    auto found = OpenMatching(path, BuildId(), reasons);
    if (!found) continue;
    const auto debug = elf::Image::Parse(found->image->bytes());
    const std::optional<BuildId> debug_id = debug ? debug->ReadBuildId() : std::nullopt;
    // A build-id tells more than the checksum, and need not be computed.
    if (!id.empty() && debug_id) {
      if (debug_id->Matches(id)) return found;
      reasons.Add(path + ": " + DescribeMismatch(id, debug_id));
      continue;
    }
    const uint32_t crc = elf::DebugLinkCrc(found->image->bytes());
    if (crc == link->crc) return found;
    reasons.Add(fmt::format("{}: checksum {:08x} is not {:08x} as {} says", path, crc, link->crc,
                            main.path));
  }
  return std::nullopt;
}

FileImagePtr ElfSearch::FindAlt(const std::string& referrer, std::string_view name,
                                const BuildId& id) {
  Reasons reasons;
  std::vector<std::string> candidates;
  const std::string text(name);
  if (text.starts_with('/')) {
    for (const std::string& root : RootsOf(0)) candidates.push_back(root + text);
  } else if (!text.empty()) {
    candidates.push_back(FolderOf(referrer) + "/" + text);
    candidates.push_back(FolderOf(RealPath(referrer)) + "/" + text);
  }
  for (const std::string& path : candidates) {
    if (auto found = OpenMatching(path, id, reasons)) return found->image;
  }
  if (auto found = FindByBuildId(id, ".debug", "debug", reasons)) return found->image;
  for (const std::string& root : RootsOf(0)) {
    for (const std::string& debug : options_.debug_dirs) {
      if (auto found = OpenMatching(root + debug + "/.dwz/" + BaseName(name), id, reasons)) {
        return found->image;
      }
    }
  }
  const auto found = AskDebuginfod(Debuginfod::Kind::kDebuginfo, id, reasons);
  return found ? found->image : nullptr;
}

FileImagePtr ElfSearch::FindDwo(const std::vector<std::string>& binaries, std::string_view name,
                                std::string_view comp_dir) {
  std::vector<std::string> candidates;
  for (const std::string& binary : binaries) {
    if (name.empty()) {
      candidates.push_back(binary + ".dwp");
      if (binary.ends_with(".debug")) {
        candidates.push_back(binary.substr(0, binary.size() - 6) + ".dwp");
      }
      continue;
    }
    candidates.push_back(FolderOf(binary) + "/" + std::string(name));
    candidates.push_back(FolderOf(binary) + "/" + BaseName(name));
  }
  if (name.starts_with('/')) {
    candidates.insert(candidates.begin(), std::string(name));
  } else if (!name.empty()) {
    candidates.insert(candidates.begin(), std::string(comp_dir) + "/" + std::string(name));
  }
  for (const std::string& path : candidates) {
    if (FileImagePtr image = MapIfThere(path)) return image;
  }
  return nullptr;
}

std::optional<FoundFile> ElfSearch::AskDebuginfod(Debuginfod::Kind kind, const BuildId& id,
                                                  Reasons& reasons) {
  if (!UsableId(id)) return std::nullopt;
  if (!debuginfod_problem_.empty()) reasons.Add(debuginfod_problem_);
  if (debuginfod_ == nullptr) return std::nullopt;
  auto path = debuginfod_->Find(kind, id);
  if (!path) {
    reasons.Add(path.error().message);
    return std::nullopt;
  }
  return OpenMatching(*path, id, reasons);
}

}  // namespace stackreel::symfiles
