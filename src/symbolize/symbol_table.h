// svma → function symbol, for one module.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "elf/image.h"
#include "session/jit_dump.h"

namespace stackreel::symbolize {

struct SymbolRange {
  Svma start, end;
  std::string_view name;  // as in the file (mangled); "name@plt" for a PLT stub
};

// Sorted by start, one symbol an address, chosen as perf 6.1 chooses (the rules stand in
// symbol_table.cc, each with a test).
class SymbolTable {
 public:
  SymbolTable() = default;
  // From .symtab of `debug`, else of `main`, else .gnu_debugdata; then .dynsym and PLT stubs of
  // `main`. Either may be null. Copies what it needs. Of a relocatable file (a kernel module) only
  // .text has symbols, counted from its start.
  static SymbolTable FromElf(const elf::Image* main, const elf::Image* debug);
  // /proc/kallsyms text: "ADDRESS TYPE NAME [MODULE]"; `module` (without brackets) empty: the
  // kernel proper.
  static SymbolTable FromKallsyms(std::string text, std::string_view module);
  // perf-PID.map text: "START SIZE NAME" in hex; bad lines are counted in `bad_lines`.
  // Of several at one address the last stays.
  static SymbolTable FromPerfMap(std::string_view text, uint64_t* bad_lines);

  // The codes of a jitdump, by place in its file. Names point into the dump.
  static SymbolTable FromJitDump(const session::JitDump& dump);

  // The symbol that holds `svma`; null if none does. Of nested ones the innermost that has a size:
  // a label inside a function is the function's.
  [[nodiscard]] const SymbolRange* Find(Svma svma) const;
  [[nodiscard]] const std::vector<SymbolRange>& symbols() const { return symbols_; }
  [[nodiscard]] bool empty() const { return symbols_.empty(); }

 private:
  friend class SymbolTableBuilder;
  // Nothing if the lines of the module are not in order. Names point into `text`.
  static std::optional<SymbolTable> FromSortedKallsyms(std::string_view text,
                                                       std::string_view module);

  std::unique_ptr<const std::string> text_;  // names point into it, or into names_
  std::vector<char> names_;  // symbols_ point into it; a vector, so that moving moves no byte
  std::vector<SymbolRange> symbols_;
  // For each symbol the index of the nearest one before it that reaches past its start, or
  // UINT32_MAX, and whether its end is stated. Both empty if no two symbols overlap.
  std::vector<uint32_t> enclosing_;
  std::vector<bool> sized_;
};

// The address that kallsyms text gives a symbol of the kernel proper; nothing if it is not there or
// `name` is empty.
std::optional<uint64_t> AddressInKallsyms(std::string_view text, std::string_view name);

// How much of a C++ function's type is shown.
enum class NameStyle : uint8_t {
  kName,       // "foo::bar<int>": as perf prints it
  kSignature,  // "void foo::bar<int>(int, char const*)"
};

// C++ (Itanium ABI), Rust (legacy and v0, without hashes) and OCaml names, readable; others come
// back as they are, and so does what would become longer than kLongestDemangledName.
std::string Demangle(std::string_view name, NameStyle style = NameStyle::kName);
inline constexpr size_t kLongestDemangledName = 65536;

}  // namespace stackreel::symbolize
