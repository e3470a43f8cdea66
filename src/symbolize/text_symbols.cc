// Symbol tables that are no ELF symbol tables: /proc/kallsyms, perf maps, jitdumps.
#include <elf.h>

#include <memory>
#include <optional>
#include <utility>

#include "symbolize/kallsyms.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbol_table_builder.h"
#include "symbolize/text_lines.h"

namespace stackreel::symbolize {

SymbolTable SymbolTable::FromKallsyms(std::string_view text, std::string_view module) {
  if (std::optional<KallsymsIndex> index = KallsymsIndex::Make(text, module)) {
    SymbolTable table;
    table.kallsyms_ = std::make_unique<const KallsymsIndex>(*std::move(index));
    return table;
  }
  SymbolTableBuilder builder;
  for (std::string_view rest = LinesThatMayBeOf(text, module); !rest.empty();) {
    const std::optional<KallsymsLine> line = ParseKallsymsLine(TakeLine(rest));
    if (!line || line->module != module) continue;
    const bool weak = line->letter == 'W' || line->letter == 'w';
    const bool local = line->letter >= 'a' && line->letter <= 'z';
    const int binding = weak ? STB_WEAK : local ? STB_LOCAL : STB_GLOBAL;
    SymbolEntry entry = {.start = line->address, .end = line->address};
    entry.binding = static_cast<uint8_t>(binding);
    entry.SetName(line->name);
    builder.Add(entry);
  }
  builder.Settle();
  return std::move(builder).Build();
}

SymbolTable SymbolTable::FromJitDump(const session::JitDump& dump) {
  SymbolTableBuilder builder;
  for (const session::JitCode& code : dump.codes()) {
    SymbolEntry entry = {.start = code.offset, .end = code.offset + code.size};
    entry.binding = STB_GLOBAL;
    entry.SetName(code.name);
    builder.Add(entry);
  }
  builder.Settle(AtOneAddress::kLast);
  return std::move(builder).Build();
}

SymbolTable SymbolTable::FromPerfMap(std::string_view text, uint64_t* bad_lines) {
  SymbolTableBuilder builder;
  uint64_t bad = 0;
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    const auto start = ParseHex(TakeWord(line));
    const auto size = ParseHex(TakeWord(line));
    if (!start || !size || line.empty() || *start + *size < *start) {
      ++bad;
      continue;
    }
    SymbolEntry entry = {.start = *start, .end = *start + *size};
    entry.binding = STB_GLOBAL;
    entry.SetName(line);
    builder.Add(entry);
  }
  builder.Settle(AtOneAddress::kLast);
  if (bad_lines != nullptr) *bad_lines = bad;
  return std::move(builder).Build();
}

}  // namespace stackreel::symbolize
