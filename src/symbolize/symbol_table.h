// svma → function symbol, for one module.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "elf/image.h"

namespace stackreel::symbolize {

struct SymbolRange {
  Svma start, end;
  std::string_view name;  // as in the file (mangled)
};

// Sorted, one symbol an address: of several the one perf prefers (function over notype, global over
// weak over local, fewer leading underscores, longer). Symbols of size 0 reach to the next one.
class SymbolTable {
 public:
  SymbolTable() = default;
  // From .symtab of `main` and `debug` (either may be null), .dynsym, .gnu_debugdata, and PLT stubs
  // ("name@plt"). Copies what it needs.
  static SymbolTable FromElf(const elf::Image* main, const elf::Image* debug);
  // /proc/kallsyms text: "ADDRESS TYPE NAME [MODULE]"; `module` empty: the kernel proper.
  static SymbolTable FromKallsyms(std::string_view text, std::string_view module);
  // perf-PID.map text: "START SIZE NAME" in hex; bad lines are counted in `bad_lines`.
  static SymbolTable FromPerfMap(std::string_view text, uint64_t* bad_lines);

  [[nodiscard]] const SymbolRange* Find(Svma svma) const;
  [[nodiscard]] const std::vector<SymbolRange>& symbols() const { return symbols_; }
  [[nodiscard]] bool empty() const { return symbols_.empty(); }

 private:
  std::string names_;  // NUL-separated; symbols_ point into it
  std::vector<SymbolRange> symbols_;
};

// C++ (Itanium ABI) and Rust (legacy and v0) names, readable; others come back as they are.
std::string Demangle(std::string_view name);

}  // namespace stackreel::symbolize
