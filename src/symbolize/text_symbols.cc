// Symbol tables that are no ELF symbol tables: /proc/kallsyms, perf maps, jitdumps.
#include <elf.h>

#include <charconv>
#include <memory>
#include <optional>
#include <utility>

#include "symbolize/symbol_table.h"
#include "symbolize/symbol_table_builder.h"

namespace stackreel::symbolize {

namespace {

std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The next word, and the blanks around it removed from `line`.
std::string_view TakeWord(std::string_view& line) {
  size_t start = 0;
  while (start < line.size() && IsBlank(line[start])) ++start;
  size_t end = start;
  while (end < line.size() && !IsBlank(line[end])) ++end;
  const std::string_view word = line.substr(start, end - start);
  while (end < line.size() && IsBlank(line[end])) ++end;
  line.remove_prefix(end);
  return word;
}

std::optional<uint64_t> ParseHex(std::string_view word) {
  if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

// nm's letters: text, weak, data, bss; lower case is local.
bool IsTextOrData(char letter) {
  switch (letter) {
    case 'T':
    case 't':
    case 'W':
    case 'w':
    case 'D':
    case 'd':
    case 'B':
    case 'b':
      return true;
    default:
      return false;
  }
}

// "ADDRESS LETTER NAME" and, of a module, "[MODULE]".
struct KallsymsLine {
  uint64_t address = 0;
  char letter = 0;
  std::string_view name, module;
};
// Nothing if it is no such line, or not of code or data.
std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line) {
  const auto address = ParseHex(TakeWord(line));
  const std::string_view letter = TakeWord(line);
  const std::string_view name = TakeWord(line);
  std::string_view module = TakeWord(line);
  if (module.size() >= 2 && module.front() == '[' && module.back() == ']') {
    module = module.substr(1, module.size() - 2);
  }
  if (!address || letter.size() != 1 || name.empty() || !IsTextOrData(letter[0])) {
    return std::nullopt;
  }
  return KallsymsLine{*address, letter[0], name, module};
}

}  // namespace

SymbolTable SymbolTable::FromKallsyms(std::string text, std::string_view module) {
  auto owned = std::make_unique<const std::string>(std::move(text));
  if (std::optional<SymbolTable> table = FromSortedKallsyms(*owned, module)) {
    table->text_ = std::move(owned);
    return std::move(*table);
  }
  SymbolTableBuilder builder;
  std::string_view rest = *owned;
  while (!rest.empty()) {
    const std::optional<KallsymsLine> line = ParseKallsymsLine(TakeLine(rest));
    if (!line || line->module != module) continue;
    const bool weak = line->letter == 'W' || line->letter == 'w';
    const bool local = line->letter >= 'a' && line->letter <= 'z';
    const int binding = weak ? STB_WEAK : local ? STB_LOCAL : STB_GLOBAL;
    builder.Add({.start = line->address,
                 .end = line->address,
                 .name = line->name,
                 .type = STT_FUNC,
                 .binding = static_cast<uint8_t>(binding)});
  }
  builder.Settle(UnsizedEnd::kNextSymbolOfSameModule);
  return std::move(builder).Build();
}

// The kernel gives its symbols in order, 100,000 and more of them: then each ends where the next
// begins, and of several at one address the last, which alone has a size, is the one to keep.
std::optional<SymbolTable> SymbolTable::FromSortedKallsyms(std::string_view text,
                                                           std::string_view module) {
  constexpr size_t kShortLine = 40;  // most are longer
  SymbolTable table;
  std::vector<SymbolRange>& symbols = table.symbols_;
  symbols.reserve(text.size() / kShortLine);
  while (!text.empty()) {
    const std::optional<KallsymsLine> line = ParseKallsymsLine(TakeLine(text));
    if (!line || line->module != module) continue;
    const Svma start(line->address);
    if (symbols.empty() || symbols.back().start < start) {
      if (!symbols.empty()) symbols.back().end = start;
      symbols.push_back({start, start, line->name});
    } else if (symbols.back().start == start) {
      symbols.back().name = line->name;
    } else {
      return std::nullopt;
    }
  }
  if (!symbols.empty()) symbols.back().end = Svma(EndOfPageAfter(symbols.back().start.value));
  return table;
}

std::optional<uint64_t> AddressInKallsyms(std::string_view text, std::string_view name) {
  while (!text.empty() && !name.empty()) {
    std::string_view line = TakeLine(text);
    const auto address = ParseHex(TakeWord(line));
    TakeWord(line);
    if (TakeWord(line) == name && line.empty()) return address;
  }
  return std::nullopt;
}

SymbolTable SymbolTable::FromJitDump(const session::JitDump& dump) {
  SymbolTableBuilder builder;
  for (const session::JitCode& code : dump.codes()) {
    builder.Add({.start = code.offset,
                 .end = code.offset + code.size,
                 .name = code.name,
                 .type = STT_FUNC,
                 .binding = STB_GLOBAL});
  }
  builder.Settle(UnsizedEnd::kNextSymbol, AtOneAddress::kLast);
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
    builder.Add({.start = *start,
                 .end = *start + *size,
                 .name = line,
                 .type = STT_FUNC,
                 .binding = STB_GLOBAL});
  }
  builder.Settle(UnsizedEnd::kNextSymbol, AtOneAddress::kLast);
  if (bad_lines != nullptr) *bad_lines = bad;
  return std::move(builder).Build();
}

}  // namespace stackreel::symbolize
