// svma → function symbol, for one module.
#pragma once

#include <cstdint>
#include <deque>
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

class KallsymsSearch;
struct SymbolEntry;

// Sorted by start, one symbol an address, chosen as perf 6.1 chooses (the rules stand in
// symbol_table.cc, each with a test). Made with as little work as can be, since of most tables few
// symbols are asked for: names stay where they are, and which of several at one address is the one
// is decided when it is asked for, if that takes their demangled names. For use by one thread.
class SymbolTable {
 public:
  SymbolTable();
  ~SymbolTable();
  SymbolTable(SymbolTable&&) noexcept;
  SymbolTable& operator=(SymbolTable&&) noexcept;
  SymbolTable(const SymbolTable&) = delete;
  SymbolTable& operator=(const SymbolTable&) = delete;

  // From .symtab of `debug`, else of `main`, else .gnu_debugdata; then .dynsym and PLT stubs of
  // `main`. Either may be null. Their bytes must outlive the table. Of a relocatable file (a kernel
  // module) only code that stays has symbols, where elf::RelocatableLayout has it.
  static SymbolTable FromElf(const elf::Image* main, const elf::Image* debug);
  // /proc/kallsyms text: "ADDRESS TYPE NAME [MODULE]"; `module` (without brackets) empty: the
  // kernel proper. `text` must outlive the table.
  static SymbolTable FromKallsyms(std::string_view text, std::string_view module);
  // perf-PID.map text: "START SIZE NAME" in hex; bad lines are counted in `bad_lines`. Of several
  // at one address the last stays. `text` must outlive the table.
  static SymbolTable FromPerfMap(std::string_view text, uint64_t* bad_lines);

  // The codes of a jitdump, by place in its file. Names point into the dump.
  static SymbolTable FromJitDump(const session::JitDump& dump);

  // The symbol that holds `svma`, if one does. Of nested ones the innermost that has a size: a
  // label inside a function is the function's.
  [[nodiscard]] std::optional<SymbolRange> Find(Svma svma) const;
  // Symbols in order of their starts; those that may be the one at an address are all there.
  [[nodiscard]] size_t size() const;
  [[nodiscard]] SymbolRange At(size_t i) const;
  [[nodiscard]] bool empty() const;

 private:
  friend class SymbolTableBuilder;

  [[nodiscard]] const SymbolTable& AllOfKallsyms() const;

  // If there is one, it is the table, and `all_of_kallsyms_` is made once that does not do.
  std::unique_ptr<const KallsymsSearch> kallsyms_;
  mutable std::unique_ptr<const SymbolTable> all_of_kallsyms_;
  std::vector<SymbolEntry> entries_;
  // For each entry the index of the nearest one before it that reaches past its start, or
  // UINT32_MAX. Empty if no two symbols overlap.
  std::vector<uint32_t> enclosing_;
  // What names may point into beside the files.
  std::deque<std::string> made_names_;
  std::vector<uint8_t> mini_debuginfo_;
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
