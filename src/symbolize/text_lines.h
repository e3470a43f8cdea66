// Lines and words of symbol tables that are text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace stackreel::symbolize {

inline std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

inline bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// The next word, and the blanks around it removed from `line`.
inline std::string_view TakeWord(std::string_view& line) {
  size_t start = 0;
  while (start < line.size() && IsBlank(line[start])) ++start;
  size_t end = start;
  while (end < line.size() && !IsBlank(line[end])) ++end;
  const std::string_view word = line.substr(start, end - start);
  while (end < line.size() && IsBlank(line[end])) ++end;
  line.remove_prefix(end);
  return word;
}

// A number in hex, with or without "0x".
inline std::optional<uint64_t> ParseHex(std::string_view word) {
  if (word.starts_with("0x") || word.starts_with("0X")) word.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, 16);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

}  // namespace stackreel::symbolize
