#include "views/text_escape.h"

#include <fmt/format.h>

namespace stackreel::views {
namespace {

bool IsContinuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

bool IsControl(uint32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

// Bidirectional controls (Unicode 15, chapter 23.2) and line or paragraph separators.
bool IsLayoutControl(uint32_t c) {
  return (c >= 0x200E && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

// Char of XML 1.0 (fifth edition), section 2.2, without the controls it discourages.
bool IsXmlChar(uint32_t c) {
  return c == '\t' || c == '\n' || (c >= 0x20 && c < 0x7F) || (c >= 0xA0 && c <= 0xD7FF) ||
         (c >= 0xE000 && c <= 0xFFFD) || (c >= 0x10000 && c <= 0x10FFFF);
}

}  // namespace

CodePoint DecodeUtf8(std::string_view text) {
  if (text.empty()) return {kBadCodePoint, 0};
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t size = lead >= 0xF0 ? 4 : (lead >= 0xE0 ? 3 : 2);
  if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return {};
  uint32_t value = lead & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(byte(i))) return {};
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[size] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    return {};
  }
  return {value, size};
}

char EscapeLetter(char c) {
  switch (c) {
    case '\n':
      return 'n';
    case '\r':
      return 'r';
    case '\t':
      return 't';
    default:
      return 0;
  }
}

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    if (c.value == kBadCodePoint) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (IsControl(c.value)) {
      out += fmt::format("\\x{:02x}", c.value);
    } else if (IsLayoutControl(c.value)) {
      out += fmt::format("\\u{{{:x}}}", c.value);
    } else {
      out += text.substr(0, c.size);
    }
    text.remove_prefix(c.size);
  }
  return out;
}

void AppendXml(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    switch (c.value) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out +=
            c.value != kBadCodePoint && IsXmlChar(c.value) ? text.substr(0, c.size) : kReplacement;
    }
    text.remove_prefix(c.size);
  }
}

std::string ValidUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    out += c.value == kBadCodePoint ? kReplacement : text.substr(0, c.size);
    text.remove_prefix(c.size);
  }
  return out;
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (char c : text) {
    if (!IsContinuation(static_cast<uint8_t>(c))) ++width;
  }
  return width;
}

std::string CutTo(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t columns = 0;
  size_t end = 0;
  while (end < text.size()) {
    if (!IsContinuation(static_cast<uint8_t>(text[end])) && columns++ == width - 1) break;
    ++end;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string Grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, 1, ',');
  return digits;
}

}  // namespace stackreel::views
