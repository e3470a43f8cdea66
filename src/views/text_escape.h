// Names from binaries and processes are any bytes; here they are made fit for where they are shown.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stackreel::views {

// The code point at the front of `text` and its length in bytes; kBadCodePoint and 1 if the bytes
// there are not UTF-8 (Unicode 15, table 3-7: no surrogates, no overlong forms).
inline constexpr uint32_t kBadCodePoint = UINT32_MAX;
struct CodePoint {
  uint32_t value = kBadCodePoint;
  size_t size = 1;
};
CodePoint DecodeUtf8(std::string_view text);
// What stands for bytes that are none: U+FFFD.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The letter that stands for a control character behind a backslash, in C and in JSON (RFC 8259);
// 0 if it has none.
char EscapeLetter(char c);

// For a terminal: control characters (C0, C1, DEL), marks that turn the writing direction and bad
// bytes become \xNN (\u{NNNN}), so that no name can drive the terminal.
std::string Printable(std::string_view text);
// For XML 1.0 text and attributes: & < > " ' as entities; what XML cannot hold becomes U+FFFD.
void AppendXml(std::string& out, std::string_view text);
// Valid UTF-8: bad bytes become U+FFFD.
std::string ValidUtf8(std::string_view text);

// Columns of printable text, one a code point.
size_t DisplayWidth(std::string_view text);
// `text` cut to `width` columns, the last of them "…" if something was cut.
std::string CutTo(std::string_view text, size_t width);

// "12,345".
std::string Grouped(uint64_t n);

}  // namespace stackreel::views
