#include "symbolize/kallsyms.h"

#include <algorithm>

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

KallsymsSearch::KallsymsSearch(std::string_view text) : text_(text), end_(EndOfKernelLines()) {}

// Where a line begins, in [offset, limit]; `limit` if none does before.
size_t KallsymsSearch::LineStartAtOrAfter(size_t offset, size_t limit) const {
  if (offset == 0) return 0;
  const size_t newline = text_.substr(0, limit).find('\n', offset - 1);
  return newline == std::string_view::npos ? limit : newline + 1;
}

// The first symbol of the kernel proper at or behind the line that begins at `begin`.
std::optional<KallsymsSearch::Line> KallsymsSearch::NextLine(size_t begin) const {
  std::string_view rest = text_.substr(begin);
  while (!rest.empty()) {
    const auto at = static_cast<size_t>(rest.data() - text_.data());
    const std::optional<KallsymsLine> line = ParseKallsymsLine(TakeLine(rest));
    const size_t end = text_.size() - rest.size();
    if (line && line->module.empty()) return Line{at, end, *line};
    if (end >= end_) break;
  }
  return std::nullopt;
}

bool KallsymsSearch::empty() const { return !NextLine(0).has_value(); }

// Halves the text between a line that is the kernel's and one that is a module's.
size_t KallsymsSearch::EndOfKernelLines() const {
  const auto is_modules = [this](size_t begin) {
    std::string_view rest = text_.substr(begin);
    return !ModuleOf(TakeLine(rest)).empty();
  };
  size_t low = 0;
  size_t high = text_.size();
  if (const size_t last = text_.find_last_not_of('\n'); last != std::string_view::npos) {
    const size_t newline = text_.rfind('\n', last);
    const size_t last_line = newline == std::string_view::npos ? 0 : newline + 1;
    if (!is_modules(last_line)) return high;
    high = last_line;
  }
  while (low < high) {
    const size_t middle = LineStartAtOrAfter(low + (high - low) / 2, high);
    if (middle == high) {  // few lines are left
      while (low < high && !is_modules(low)) low = LineStartAtOrAfter(low + 1, high);
      return low;
    }
    if (is_modules(middle)) {
      high = middle;
    } else {
      low = LineStartAtOrAfter(middle + 1, high);
    }
  }
  return high;
}

KallsymsSearch::Found KallsymsSearch::Find(Svma svma) const {
  constexpr size_t kFewLines = 4096;  // bytes
  // The line of the last symbol at or before `svma` begins in [low, high), if there is one.
  size_t low = 0;
  size_t high = end_;
  while (high - low > kFewLines) {
    const size_t middle = low + (high - low) / 2;
    const std::optional<Line> line = NextLine(LineStartAtOrAfter(middle, high));
    if (line && line->begin < high && line->line.address <= svma.value) {
      low = line->begin;
    } else {
      high = middle;
    }
  }
  Found found;
  std::optional<KallsymsLine> before;  // the line passed last
  std::optional<KallsymsLine> last;    // the last one at or before `svma`
  uint64_t end = 0;
  for (std::optional<Line> next = NextLine(low); next; next = NextLine(next->end)) {
    const KallsymsLine& line = next->line;
    if (before && line.address < before->address) found.in_order = false;
    before = line;
    if (line.address <= svma.value) {
      last = line;
    } else if (end == 0) {
      end = line.address;
    }
    if (next->end >= end_ || (end != 0 && next->begin >= high)) break;
  }
  if (!last) {
    found.in_order = found.in_order && low == 0;
    return found;
  }
  if (end == 0) end = EndOfPageAfter(last->address);
  if (svma.value < end) found.symbol = SymbolRange{Svma(last->address), Svma(end), last->name};
  return found;
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
