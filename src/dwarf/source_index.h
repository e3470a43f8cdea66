// svma → source line and inlined functions, from DWARF 2 to 5, by a sorted index of our own.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/io.h"
#include "dwarf/prototype.h"

namespace stackreel::dwarf {

// One function that stands at an address: the innermost inlined one first, the function that has
// code of its own last. Views live as long as the index.
struct SourceFrame {
  std::string_view function;  // linkage name where there is one, else the plain name; may be empty
  bool function_is_linkage_name = false;
  std::string_view file;  // where control is in this frame
  uint32_t line = 0;      // 0: not known
  uint32_t column = 0;
  bool inlined = false;
};

// Fetches files that a debug file refers to; null where there is none.
struct DebugFileLoader {
  // .gnu_debugaltlink (dwz): path as written and build-id.
  std::function<FileImagePtr(std::string_view path, ByteView build_id)> alt_file;
  // Split DWARF: DW_AT_dwo_name, DW_AT_comp_dir; the .dwp beside the binary when name is empty.
  std::function<FileImagePtr(std::string_view dwo_name, std::string_view comp_dir)> dwo_file;
};

struct SourceOptions {
  bool lines = true;  // false: file, line and column stay empty, and line tables are not read
};

// Reads compile units on first need, each in one sweep, and keeps only sorted intervals. For use by
// one thread at a time.
class SourceIndex {
 public:
  // `file` is kept alive. kNotFound: the file has no DWARF; kUnsupported: it is relocatable, so
  // that addresses in it are not known; kDamaged: not an ELF file, or its .debug_info is beyond
  // reading.
  static Result<std::unique_ptr<SourceIndex>> Open(FileImagePtr file, DebugFileLoader loader,
                                                   const SourceOptions& options = {});
  virtual ~SourceIndex() = default;

  // Frames at a svma, innermost first; empty if no unit covers it.
  virtual std::vector<SourceFrame> Find(Svma svma) = 0;
  // What the function takes and gives back whose code begins at a svma; else why that is not known.
  virtual std::expected<Prototype, std::string> PrototypeAt(Svma svma) = 0;
  // What could not be read: "dwarf.bad_unit" and the like (docs/counters.md).
  [[nodiscard]] virtual const Counters& counters() const = 0;
};

}  // namespace stackreel::dwarf
