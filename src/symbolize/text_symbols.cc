// Symbol tables that are text: /proc/kallsyms and perf maps.
#include <elf.h>

#include <charconv>
#include <optional>

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
  return std::string_view("TtWwDdBb").find(letter) != std::string_view::npos;
}

}  // namespace

SymbolTable SymbolTable::FromKallsyms(std::string_view text, std::string_view module) {
  constexpr size_t kShortLine = 32;  // most are longer
  SymbolTableBuilder builder;
  builder.Reserve(text.size() / kShortLine);
  while (!text.empty()) {
    std::string_view line = TakeLine(text);
    const auto address = ParseHex(TakeWord(line));
    const std::string_view letter = TakeWord(line);
    const std::string_view name = TakeWord(line);
    std::string_view owner = TakeWord(line);
    if (owner.size() >= 2 && owner.front() == '[' && owner.back() == ']') {
      owner = owner.substr(1, owner.size() - 2);
    }
    if (!address || letter.size() != 1 || name.empty() || !IsTextOrData(letter[0])) continue;
    if (owner != module) continue;
    const bool weak = letter[0] == 'W' || letter[0] == 'w';
    const bool local = letter[0] >= 'a' && letter[0] <= 'z';
    builder.Add({.start = *address,
                 .end = *address,
                 .name = name,
                 .type = STT_FUNC,
                 .binding = static_cast<uint8_t>(weak    ? STB_WEAK
                                                 : local ? STB_LOCAL
                                                         : STB_GLOBAL)});
  }
  builder.Settle(UnsizedEnd::kNextSymbolOfSameModule);
  return std::move(builder).Build();
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
