// perf maps and kallsyms. The first byte says which.
#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "symbolize/symbol_table.h"

using stackreel::symbolize::SymbolRange;
using stackreel::symbolize::SymbolTable;

namespace {

void Verify(const SymbolTable& table) {
  CHECK(std::ranges::is_sorted(table.symbols(), {}, &SymbolRange::start));
  for (const SymbolRange& symbol : table.symbols()) {
    const SymbolRange* found = table.Find(symbol.start);
    CHECK(found == nullptr || (found->start <= symbol.start && symbol.start < found->end));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    uint64_t bad_lines = 0;
    const SymbolTable table = SymbolTable::FromPerfMap(text, &bad_lines);
    const auto newlines = static_cast<uint64_t>(std::ranges::count(text, '\n'));
    CHECK(table.symbols().size() + bad_lines <= newlines + 1);
    Verify(table);
  } else {
    Verify(SymbolTable::FromKallsyms(std::string(text), ""));
    Verify(SymbolTable::FromKallsyms(std::string(text), "mod"));
  }
  return 0;
}
