#include "views/json_text.h"

#include <cstdint>

#include "views/text_escape.h"

namespace stackreel::views {
namespace {

void AppendEscaped(std::string& out, char c) {
  out += '\\';
  if (c == '"' || c == '\\') {
    out += c;
  } else if (const char letter = EscapeLetter(c); letter != 0) {
    out += letter;
  } else {
    constexpr char kDigits[] = "0123456789abcdef";
    out += "u00";
    out += kDigits[static_cast<uint8_t>(c) >> 4];
    out += kDigits[static_cast<uint8_t>(c) & 15];
  }
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    if (c.value < 0x20 || c.value == '"' || c.value == '\\' || c.value == 0x7f) {
      AppendEscaped(out, text[0]);
    } else if (c.value == kBadCodePoint) {
      out += kReplacement;
    } else {
      out += text.substr(0, c.size);
    }
    text.remove_prefix(c.size);
  }
  out += '"';
}

}  // namespace stackreel::views
