// usage: source_frames FILE < ADDRESSES
// For each address (hex, one a line) prints it, then for each function there, innermost first, its
// name and FILE:LINE:COLUMN on a line each ("??", 0 where not known), then an empty line: as
// llvm-symbolizer does, for compare_source_index.py. What was bad goes to standard error.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "dwarf/source_index.h"
#include "os/file.h"

namespace stackreel {
namespace {

std::string_view OrUnknown(std::string_view text) { return text.empty() ? "??" : text; }

FileImagePtr MapOrNull(const std::string& path) {
  Result<FileImagePtr> file = os::MapFile(path);
  return file ? *file : nullptr;
}

// Files are looked for where they are said to be, from the folder of `path`.
dwarf::DebugFileLoader LoaderBeside(const std::string& path) {
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  dwarf::DebugFileLoader loader;
  loader.alt_file = [folder](std::string_view name, ByteView /*build_id*/) {
    return MapOrNull(name.starts_with('/') ? std::string(name) : folder + std::string(name));
  };
  loader.dwo_file = [path](std::string_view name, std::string_view comp_dir) {
    if (name.empty()) return MapOrNull(path + ".dwp");
    return MapOrNull(name.starts_with('/') ? std::string(name)
                                           : fmt::format("{}/{}", comp_dir, name));
  };
  return loader;
}

int Run(const std::string& path) {
  const Result<FileImagePtr> file = os::MapFile(path);
  if (!file) {
    fmt::print(stderr, "{}\n", file.error().ToString());
    return 1;
  }
  auto index = dwarf::SourceIndex::Open(*file, LoaderBeside(path));
  if (!index) {
    fmt::print(stderr, "{}\n", index.error().ToString());
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    const uint64_t svma = std::stoull(line, nullptr, 16);
    fmt::print("{:#x}\n", svma);
    const auto frames = (*index)->Find(Svma(svma));
    if (frames.empty()) fmt::print("??\n??:0:0\n");
    for (const dwarf::SourceFrame& frame : frames) {
      fmt::print("{}\n{}:{}:{}\n", OrUnknown(frame.function), OrUnknown(frame.file), frame.line,
                 frame.column);
    }
    fmt::print("\n");
  }
  for (const auto& [name, count] : (*index)->counters().values()) {
    fmt::print(stderr, "{} {}\n", name, count);
  }
  return 0;
}

}  // namespace
}  // namespace stackreel

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: source_frames FILE < ADDRESSES\n");
    return 2;
  }
  return stackreel::Run(argv[1]);
}
