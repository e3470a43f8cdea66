// Symbol tables that are no ELF symbol tables: /proc/kallsyms, perf maps, jitdumps.
#include <elf.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "symbolize/kallsyms.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbol_table_builder.h"
#include "symbolize/text_lines.h"

namespace stackreel::symbolize {

namespace {

// All symbols of one module, in whatever order their lines are.
SymbolTable TableOfLines(std::string_view kallsyms, std::string_view module) {
  SymbolTableBuilder builder;
  // The kernel writes its modules' lines behind its own.
  if (!module.empty()) {
    const size_t bracket = std::min(kallsyms.find('['), kallsyms.size());
    const size_t newline = kallsyms.rfind('\n', bracket);
    kallsyms.remove_prefix(newline == std::string_view::npos ? 0 : newline + 1);
  }
  while (!kallsyms.empty()) {
    const std::optional<KallsymsLine> line = ParseKallsymsLine(TakeLine(kallsyms));
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

}  // namespace

SymbolTable SymbolTable::FromKallsyms(std::string_view text, std::string_view module) {
  if (!module.empty()) return TableOfLines(text, module);
  SymbolTable table;
  table.kallsyms_ = std::make_unique<const KallsymsSearch>(text);
  return table;
}

const SymbolTable& SymbolTable::AllOfKallsyms() const {
  if (all_of_kallsyms_ == nullptr) {
    all_of_kallsyms_ = std::make_unique<const SymbolTable>(TableOfLines(kallsyms_->text(), ""));
  }
  return *all_of_kallsyms_;
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
