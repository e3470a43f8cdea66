// Finds ELF files of a module: the binary, its debug file, dwz and split DWARF files.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.h"
#include "base/io.h"
#include "elf/image.h"
#include "symfiles/debuginfod.h"
#include "symfiles/symfiles.h"

namespace stackreel::symfiles {

// Why candidates were not taken, in the order they were tried.
class Reasons {
 public:
  void Add(std::string reason);
  // All of them, "; " between.
  [[nodiscard]] std::string ToString() const;
  [[nodiscard]] bool empty() const { return reasons_.empty(); }

 private:
  std::vector<std::string> reasons_;
};

// A mapped file, and the path it was found at.
struct FoundFile {
  FileImagePtr image;
  std::string path;
};

class ElfSearch {
 public:
  explicit ElfSearch(const SearchOptions& options);

  // The binary that a recording has as `path`, with build-id `id` where that is known. `pid` is
  // whose root folder may hold it, or (not 0) who may still have it mapped where it was deleted or
  // replaced. `deleted`: it is known to be, so that what is at `path` now is another file.
  std::optional<FoundFile> FindMain(const std::string& path, const BuildId& id, uint32_t pid,
                                    bool deleted, Reasons& reasons);
  // The debug file of a binary that was found as `main`, or (null) is known by build-id only.
  std::optional<FoundFile> FindDebug(const FoundFile* main, const BuildId& id, uint32_t pid,
                                     Reasons& reasons);
  // The file of .gnu_debugaltlink, named in `referrer`.
  FileImagePtr FindAlt(const std::string& referrer, std::string_view name, const BuildId& id);
  // A .dwo of a binary at `binary`; its .dwp if `name` is empty.
  static FileImagePtr FindDwo(const std::vector<std::string>& binaries, std::string_view name,
                              std::string_view comp_dir);
  // The file that debug folders or the cache have by build-id: `suffix` is "" or ".debug", `leaf`
  // "elf", "debug", "vdso".
  std::optional<FoundFile> FindByBuildId(const BuildId& id, const char* suffix, const char* leaf,
                                         Reasons& reasons);
  // Maps `path` if it is an ELF file whose build-id is `id` (any, where that is empty). A missing
  // file is no reason worth telling.
  static std::optional<FoundFile> OpenMatching(const std::string& path, const BuildId& id,
                                               Reasons& reasons);

  [[nodiscard]] const SearchOptions& options() const { return options_; }
  // Folders that stand for "/", in order: --symfs, /proc/PID/root if `pid` is not 0, "" (this
  // machine's).
  [[nodiscard]] std::vector<std::string> RootsOf(uint32_t pid) const;

 private:
  static std::optional<FoundFile> FindMapped(const std::string& path, const BuildId& id,
                                             uint32_t pid, Reasons& reasons);
  std::optional<FoundFile> FindByDebugLink(const FoundFile& main, const elf::Image& image,
                                           const BuildId& id, uint32_t pid, Reasons& reasons);
  std::optional<FoundFile> AskDebuginfod(Debuginfod::Kind kind, const BuildId& id,
                                         Reasons& reasons);

  SearchOptions options_;
  std::unique_ptr<Debuginfod> debuginfod_;
  std::string debuginfod_problem_;
};

// "build-id differs: recorded 0123456789ab…, on disk …"
std::string DescribeMismatch(const BuildId& recorded, const std::optional<BuildId>& on_disk);

}  // namespace stackreel::symfiles
