// /proc/kallsyms and copies of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {

// A line of code or data, "ADDRESS LETTER NAME" and, of a module, "[MODULE]".
struct KallsymsLine {
  uint64_t address = 0;
  char letter = 0;  // as nm has them: T text, W weak, D data, B bss; lower case is local
  std::string_view name, module;
};
// Nothing if it is no such line.
std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line);

// The part of kallsyms text that may have lines of `module` ("" the kernel proper). The kernel
// writes its modules' lines behind its own.
std::string_view LinesThatMayBeOf(std::string_view kallsyms, std::string_view module);

// The symbols of a kernel where they stand in kallsyms text. There are 100,000 and more of them, of
// which a profile names few hundred: only where their lines begin is noted, in one pass.
class KallsymsIndex {
 public:
  // Nothing if the lines of `module` are not in the order of their addresses. `text` must outlive
  // the index.
  static std::optional<KallsymsIndex> Make(std::string_view text, std::string_view module);

  [[nodiscard]] size_t size() const { return lines_.size(); }
  // Each symbol ends where the next one starts, the last one past its page.
  [[nodiscard]] SymbolRange At(size_t i) const;
  [[nodiscard]] std::optional<SymbolRange> Find(Svma svma) const;

 private:
  explicit KallsymsIndex(std::string_view text) : text_(text) {}
  [[nodiscard]] KallsymsLine LineAt(size_t i) const;
  [[nodiscard]] uint64_t StartOf(size_t i) const { return LineAt(i).address; }

  std::string_view text_;
  std::vector<uint32_t> lines_;  // offsets of lines, one an address
};

}  // namespace stackreel::symbolize
