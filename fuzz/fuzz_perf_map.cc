// perf maps and kallsyms. The first byte says which.
#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "symbolize/symbol_table.h"

using stackreel::Svma;
using stackreel::symbolize::SymbolRange;
using stackreel::symbolize::SymbolTable;

namespace {

void Verify(const SymbolTable& table) {
  Svma last;
  for (size_t i = 0; i < table.size(); ++i) {
    const SymbolRange symbol = table.At(i);
    CHECK(last <= symbol.start);
    last = symbol.start;
    const std::optional<SymbolRange> found = table.Find(symbol.start);
    CHECK(!found || (found->start <= symbol.start && symbol.start < found->end));
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
    CHECK(table.size() + bad_lines <= newlines + 1);
    Verify(table);
  } else {
    Verify(SymbolTable::FromKallsyms(text, ""));
    Verify(SymbolTable::FromKallsyms(text, "mod"));
  }
  return 0;
}
