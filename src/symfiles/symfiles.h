// Where the files of a module are: caches, debug folders, containers, debuginfod.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/build_id.h"
#include "base/error.h"
#include "base/io.h"
#include "symbolize/symbolizer.h"

namespace stackreel::symfiles {

struct SearchOptions {
  std::vector<std::string> symfs;  // --symfs, --sysroot: looked in before "/"
  std::vector<std::string> debug_dirs = {"/usr/lib/debug"};
  std::string buildid_dir;  // perf's cache; empty: PERF_BUILDID_DIR, else ~/.debug
  std::string kallsyms;     // --kallsyms; empty: the cache's, else /proc/kallsyms if
                            // the running kernel is the recorded one
  std::string vmlinux;      // --vmlinux
  bool debuginfod = true;   // if DEBUGINFOD_URLS is set
  bool proc_root = false;   // /proc/PID/root: while recording
  BuildId kernel_build_id;  // of the recording, if known
  std::string os_release;   // of the recording
  // Hears of a file that was named (--vmlinux), and turns out not to be the recorded kernel's.
  std::function<void(const std::string&)> notice;
};

// Looks at what somebody named, before anything is read: folders must be there (those of
// `debug_dirs` below the root or one of `symfs`), kallsyms must have symbols with addresses,
// vmlinux must be an ELF file. kNotFound, kPermission, kDamaged, naming the option. Of a device or
// a pipe nothing is read.
Status CheckSearchOptions(const SearchOptions& options);

// A ModuleFileProvider over this machine's files. A file whose build-id differs from the
// recording's is not used, and ModuleFiles::why says so.
std::unique_ptr<symbolize::ModuleFileProvider> MakeFileProvider(const SearchOptions& options);

// perf's cache layout: DIR/.build-id/ab/cdef… is a link to DIR/PATH/BUILDID, where `leaf` lies:
// "elf", "debug", "vdso", "kallsyms". Empty if `id` is.
std::string CachePath(const std::string& buildid_dir, const BuildId& id, const char* leaf = "elf");
// Copies `image` into the cache under `path` (also "[vdso]", "[kernel.kallsyms]"); what is there
// already stays.
Status AddToCache(const std::string& buildid_dir, const std::string& path, const BuildId& id,
                  ByteView image, const char* leaf);
// PERF_BUILDID_DIR, else buildid.dir of ~/.perfconfig or /etc/perfconfig, else ~/.debug.
std::string DefaultBuildIdDir();
// The value of "dir" in section "[buildid]" of a perfconfig's text.
std::optional<std::string> BuildIdDirOfConfig(std::string_view text);

}  // namespace stackreel::symfiles
