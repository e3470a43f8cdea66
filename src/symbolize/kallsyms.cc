#include "symbolize/kallsyms.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/hex_digits.h"
#include "symbolize/symbol_table_builder.h"
#include "symbolize/text_lines.h"

namespace stackreel::symbolize {

namespace {

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

// What a line begins with.
struct Head {
  uint64_t address = 0;
  char letter = 0;
  std::string_view rest;  // name and module, blanks in front
};

std::optional<Head> ParseHead(std::string_view line) {
  // As the kernel writes it: 16 digits, a blank, the letter, a blank.
  constexpr size_t kRest = 18;
  if (line.size() > kRest && line[16] == ' ' && line[kRest] == ' ') {
    const std::optional<uint32_t> high = ParseHexDigits(line.data());
    const std::optional<uint32_t> low = ParseHexDigits(line.data() + 8);
    if (high && low) return Head{uint64_t{*high} << 32 | *low, line[17], line.substr(kRest)};
  }
  const std::optional<uint64_t> address = ParseHex(TakeWord(line));
  const std::string_view letter = TakeWord(line);
  if (!address || letter.size() != 1) return std::nullopt;
  return Head{*address, letter[0], line};
}

// "MODULE" of "… [MODULE]".
std::string_view ModuleOf(std::string_view line) {
  while (!line.empty() && IsBlank(line.back())) line.remove_suffix(1);
  if (!line.ends_with(']')) return {};
  const size_t bracket = line.rfind('[');
  if (bracket == std::string_view::npos) return {};
  return line.substr(bracket + 1, line.size() - bracket - 2);
}

bool HasWord(std::string_view text) { return !std::ranges::all_of(text, IsBlank); }

}  // namespace

std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line) {
  std::optional<Head> head = ParseHead(line);
  if (!head || !IsTextOrData(head->letter) || !HasWord(head->rest)) return std::nullopt;
  return KallsymsLine{head->address, head->letter, TakeWord(head->rest), ModuleOf(line)};
}

std::string_view LinesThatMayBeOf(std::string_view kallsyms, std::string_view module) {
  if (module.empty()) return kallsyms;
  const size_t bracket = kallsyms.find('[');
  if (bracket == std::string_view::npos) return {};
  const size_t newline = kallsyms.rfind('\n', bracket);
  return newline == std::string_view::npos ? kallsyms : kallsyms.substr(newline + 1);
}

// Of several symbols at one address the last, which alone has a size, is the one to keep.
std::optional<KallsymsIndex> KallsymsIndex::Make(std::string_view text, std::string_view module) {
  constexpr size_t kShortLine = 40;  // most are longer
  if (text.size() > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  KallsymsIndex index(text);
  index.lines_.reserve(text.size() / kShortLine);
  uint64_t last = 0;
  for (std::string_view rest = LinesThatMayBeOf(text, module); !rest.empty();) {
    const auto offset = static_cast<uint32_t>(rest.data() - text.data());
    const std::string_view line = TakeLine(rest);
    const std::optional<Head> head = ParseHead(line);
    if (!head || !IsTextOrData(head->letter) || ModuleOf(line) != module || !HasWord(head->rest)) {
      continue;
    }
    if (index.lines_.empty() || head->address > last) {
      index.lines_.push_back(offset);
    } else if (head->address == last) {
      index.lines_.back() = offset;
    } else {
      return std::nullopt;
    }
    last = head->address;
  }
  return index;
}

KallsymsLine KallsymsIndex::LineAt(size_t i) const {
  std::string_view rest = text_.substr(lines_[i]);
  // The text may be of a file that changes under us.
  return ParseKallsymsLine(TakeLine(rest)).value_or(KallsymsLine());
}

SymbolRange KallsymsIndex::At(size_t i) const {
  const KallsymsLine line = LineAt(i);
  const uint64_t end = i + 1 < size() ? StartOf(i + 1) : EndOfPageAfter(line.address);
  return {Svma(line.address), Svma(end), line.name};
}

std::optional<SymbolRange> KallsymsIndex::Find(Svma svma) const {
  size_t low = 0;  // the number of symbols that start at or before `svma`
  for (size_t high = size(); low < high;) {
    const size_t middle = low + (high - low) / 2;
    if (StartOf(middle) <= svma.value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) return std::nullopt;
  const SymbolRange symbol = At(low - 1);
  if (svma < symbol.start || svma >= symbol.end) return std::nullopt;
  return symbol;
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

}  // namespace stackreel::symbolize
