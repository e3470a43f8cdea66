#include "views/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>

#include "base/byte_reader.h"
#include "views/text_escape.h"
#include "views/trace_text_pieces.h"

namespace stackreel::views {

using tracedata::EventKind;
using tracedata::ValueFormat;

namespace {

// In quotes, with C's escapes. A program's texts are any bytes: none of them may drive a terminal.
void AppendQuoted(std::string& out, std::string_view text, char quote) {
  std::string escaped;
  for (const char c : text) {
    const char letter = c == quote || c == '\\' ? c : c == '\0' ? '0' : EscapeLetter(c);
    if (letter != 0) escaped += '\\';
    escaped += letter != 0 ? letter : c;
  }
  out += quote;
  out += Printable(escaped);
  out += quote;
}

// Up to eight little-endian bytes.
uint64_t NumberIn(ByteView bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), std::min<size_t>(bytes.size(), sizeof(value)));
  return kNativeEndian == Endian::kLittle ? value : std::byteswap(value);
}

int64_t SignedIn(ByteView bytes) {
  const size_t bits = 8 * std::clamp<size_t>(bytes.size(), 1, 8);
  return static_cast<int64_t>(NumberIn(bytes) << (64 - bits)) >> (64 - bits);
}

void AppendSigned(std::string& out, int64_t value) {
  if (value < 0) out += '-';
  AppendNumber(out, value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}

void AppendHex(std::string& out, uint64_t value) {
  std::array<char, 16> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  out += "0x";
  out.append(digits.data(), end);
}

void AppendFloat(std::string& out, ByteView bytes) {
  if (bytes.size() == sizeof(float)) {
    const auto bits = static_cast<uint32_t>(NumberIn(bytes));
    fmt::format_to(std::back_inserter(out), "{}", std::bit_cast<float>(bits));
  } else if (bytes.size() == sizeof(double)) {
    fmt::format_to(std::back_inserter(out), "{}", std::bit_cast<double>(NumberIn(bytes)));
  } else {  // x87's 80 bits: sign and exponent, then 64 bits of fraction with its integer bit
    const uint64_t fraction = NumberIn(bytes.first(8));
    const auto top = static_cast<uint32_t>(NumberIn(bytes.subspan(8, 2)));
    constexpr uint32_t kSpecial = 0x7fff;
    constexpr uint64_t kInfinity = uint64_t{1} << 63;
    if ((top & kSpecial) == kSpecial && fraction != kInfinity) {
      out += top == ValueFormat::kNoFloatExponent && fraction == 0 ? "?" : "nan";
      return;
    }
    const int exponent = static_cast<int>(top & kSpecial) - 16383 - 63;
    double value = std::ldexp(static_cast<double>(fraction), exponent);
    if ((top & 0x8000) != 0) value = -value;
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

// What a register holds. An int leaves the upper half of one as it is, mostly zeros.
void AppendUntyped(std::string& out, ByteView bytes) {
  constexpr int64_t kSmall = 100'000;
  const int64_t value = SignedIn(bytes);
  const auto narrow = static_cast<int32_t>(static_cast<uint32_t>(value));
  if (value >= -kSmall && value <= kSmall) {
    AppendSigned(out, value);
  } else if (value >> 32 == 0 && narrow < 0 && narrow >= -kSmall) {
    AppendSigned(out, narrow);
  } else {
    AppendHex(out, NumberIn(bytes));
  }
}

void AppendString(std::string& out, ByteReader& reader) {
  const uint16_t size = reader.U16();
  if (!reader.ok()) {
    out += '?';
  } else if (size == ValueFormat::kNullText) {
    out += "NULL";
  } else if (size == ValueFormat::kUnreadableText) {
    out += '<';
    AppendHex(out, reader.U64());
    out += '>';
  } else {
    AppendQuoted(out, AsText(reader.Bytes(size & ~ValueFormat::kTextGoesOn)), '"');
    if ((size & ValueFormat::kTextGoesOn) != 0) out += "...";
  }
}

bool IsKnown(const ValueFormat& format, ByteView bytes) {
  if (format.kind == ValueFormat::Kind::kStruct) return true;
  if (bytes.empty()) return false;
  if (format.kind != ValueFormat::Kind::kFloat) return true;
  return bytes.size() == 4 || bytes.size() == 8 || bytes.size() == 10 || bytes.size() == 16;
}

}  // namespace

const ValueText::Names& ValueText::NamesOf(uint32_t enumeration) {
  const auto [at, is_new] = enumerations_.try_emplace(enumeration);
  if (is_new) {
    for (const auto& one : calls_.source().tables().enumerations) {
      if (one.id != enumeration) continue;
      for (const auto& name : one.names) at->second.try_emplace(name.value, name.text);
    }
  }
  return at->second;
}

// Its name; or the names of its bits; or the number.
void ValueText::AppendEnumeration(std::string& out, uint32_t id, int64_t value) {
  const Names& names = NamesOf(id);
  if (const auto at = names.find(value); at != names.end()) {
    out += at->second;
    return;
  }
  auto left = static_cast<uint64_t>(value);
  std::string bits;
  for (const auto& [one, name] : names) {
    const auto bit = static_cast<uint64_t>(one);
    if (!std::has_single_bit(bit) || (left & bit) == 0) continue;
    if (!bits.empty()) bits += '|';
    bits += name;
    left &= ~bit;
  }
  if (left == 0 && !bits.empty()) {
    out += bits;
  } else {
    AppendSigned(out, value);
  }
}

void ValueText::AppendFunction(std::string& out, uint64_t avma) {
  if (const auto row = functions_.RowAt(Avma(avma))) {
    out += '&';
    out += calls_.names().NameOf(*row);
  } else {
    AppendHex(out, avma);
  }
}

void ValueText::AppendOne(std::string& out, const ValueFormat& format, ByteView bytes) {
  switch (format.kind) {
    case ValueFormat::Kind::kSigned:
      AppendSigned(out, SignedIn(bytes));
      return;
    case ValueFormat::Kind::kNumber:
      AppendUntyped(out, bytes);
      return;
    case ValueFormat::Kind::kEnumeration:
      AppendEnumeration(out, format.enumeration, SignedIn(bytes));
      return;
    case ValueFormat::Kind::kUnsigned:
      AppendNumber(out, NumberIn(bytes));
      return;
    case ValueFormat::Kind::kHex:
    case ValueFormat::Kind::kPointer:
      if (bytes.size() == 16 && NumberIn(bytes.subspan(8)) != 0) {
        AppendHex(out, NumberIn(bytes.subspan(8)));
        fmt::format_to(std::back_inserter(out), "{:016x}", NumberIn(bytes.first(8)));
      } else {
        AppendHex(out, NumberIn(bytes));
      }
      return;
    case ValueFormat::Kind::kFunction:
      AppendFunction(out, NumberIn(bytes));
      return;
    case ValueFormat::Kind::kCharacter:
      AppendQuoted(out, AsText(bytes.first(1)), '\'');
      return;
    case ValueFormat::Kind::kBool:
      if (bytes[0] > 1) {
        AppendNumber(out, bytes[0]);
      } else {
        out += bytes[0] != 0 ? "true" : "false";
      }
      return;
    case ValueFormat::Kind::kFloat:
      AppendFloat(out, bytes);
      return;
    case ValueFormat::Kind::kStruct:
      out += "{...}";
      return;
    case ValueFormat::Kind::kString:
      return;
  }
}

const std::vector<ValueFormat>& ValueText::FormatsOf(const analyze::CallStep& step) const {
  const tracedata::TraceFunction& function = calls_.names().At(step.function);
  return step.kind == EventKind::kEntry ? function.arguments : function.returns;
}

bool ValueText::Has(const analyze::CallStep& step) const {
  if (step.kind != EventKind::kEntry && step.kind != EventKind::kExit) return false;
  return !step.values.empty() || tracedata::TakeNoBytes(FormatsOf(step));
}

void ValueText::Append(std::string& out, const analyze::CallStep& step) {
  Append(out, FormatsOf(step), step.values);
}

void ValueText::Append(std::string& out, const std::vector<ValueFormat>& formats, ByteView values) {
  ByteReader reader(values);
  for (size_t i = 0; i < formats.size(); ++i) {
    if (i > 0) out += ", ";
    const ValueFormat& format = formats[i];
    if (format.kind == ValueFormat::Kind::kString) {
      AppendString(out, reader);
      continue;
    }
    const bool has_bytes = format.kind != ValueFormat::Kind::kStruct;
    const ByteView bytes = has_bytes ? reader.Bytes(format.bytes) : ByteView();
    if (IsKnown(format, bytes)) {
      AppendOne(out, format, bytes);
    } else {
      out += '?';
    }
  }
  if (formats.empty() && !values.empty()) out += '?';
}

}  // namespace stackreel::views
