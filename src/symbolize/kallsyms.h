// /proc/kallsyms and copies of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

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

// The symbols of the kernel proper where they stand in kallsyms text. The kernel writes them in the
// order of their addresses, its modules' lines behind them. There are 100,000 and more, of which a
// profile names few hundred: nothing is read but what a look-up passes by.
class KallsymsSearch {
 public:
  // `text` must outlive it.
  explicit KallsymsSearch(std::string_view text);

  [[nodiscard]] std::string_view text() const { return text_; }
  // Whether it has no symbol.
  [[nodiscard]] bool empty() const;

  struct Found {
    // If not, the lines around the address are not in order, and it has to be looked for otherwise.
    bool in_order = true;
    // Of several symbols at one address the last, which alone has a size. Each ends where the next
    // one starts, the last one past its page.
    std::optional<SymbolRange> symbol;
  };
  [[nodiscard]] Found Find(Svma svma) const;

 private:
  // A line that begins at `begin`; the next one begins at `end`.
  struct Line {
    size_t begin = 0, end = 0;
    KallsymsLine line;
  };
  [[nodiscard]] std::optional<Line> NextLine(size_t begin) const;
  [[nodiscard]] size_t LineStartAtOrAfter(size_t offset, size_t limit) const;
  [[nodiscard]] size_t EndOfKernelLines() const;

  std::string_view text_;
  size_t end_;  // of the lines of the kernel proper
};

}  // namespace stackreel::symbolize
