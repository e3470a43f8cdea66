#include "views/json_text.h"

#include <cstdint>

namespace stackreel::views {
namespace {

// How long the UTF-8 sequence at the start of `text` is; 0 if it is not one (RFC 3629).
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  const size_t length = first < 0xc2   ? 0
                        : first < 0xe0 ? 2
                        : first < 0xf0 ? 3
                        : first < 0xf5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) >= 0xa0;
  const bool too_large = first == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || too_large ? 0 : length;
}

void AppendEscaped(std::string& out, char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += "0123456789abcdef"[(static_cast<uint8_t>(c) >> 4) & 15];
      out += "0123456789abcdef"[static_cast<uint8_t>(c) & 15];
  }
}

}  // namespace

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const auto c = static_cast<uint8_t>(text[0]);
    size_t length = 1;
    if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      AppendEscaped(out, text[0]);
    } else if (c < 0x80) {
      out += text[0];
    } else if (const size_t sequence = SequenceLength(text); sequence != 0) {
      out += text.substr(0, sequence);
      length = sequence;
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(length);
  }
  out += '"';
}

}  // namespace stackreel::views
