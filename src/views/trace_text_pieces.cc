#include "views/trace_text_pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "base/byte_reader.h"

namespace stackreel::views {

using tracedata::LossReason;
using tracedata::ValueFormat;

namespace {

constexpr uint16_t kUnreadable = 0xffff;  // see ValueFormat::Kind::kString
constexpr std::string_view kSpaces = "                                ";

void Pad(std::string& out, size_t count, char fill) {
  if (fill == ' ' && count <= kSpaces.size()) {
    out.append(kSpaces.data(), count);
  } else {
    out.append(count, fill);
  }
}

void AppendCharacter(std::string& out, char c, char quote) {
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\0':
      out += "\\0";
      return;
    default:
      break;
  }
  const auto byte = static_cast<uint8_t>(c);
  if (c == quote || c == '\\') {
    out += '\\';
    out += c;
  } else if (byte < 0x20 || byte == 0x7f) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", byte);
  } else {
    out += c;
  }
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
    const int exponent = static_cast<int>(top & 0x7fff) - 16383 - 63;
    double value = static_cast<double>(fraction);
    // By repeated squaring, since nothing here has ldexp's range at hand.
    double factor = exponent < 0 ? 0.5 : 2.0;
    for (uint32_t n = static_cast<uint32_t>(exponent < 0 ? -exponent : exponent); n != 0; n >>= 1) {
      if ((n & 1) != 0) value *= factor;
      factor *= factor;
    }
    if ((top & 0x8000) != 0) value = -value;
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

void AppendString(std::string& out, ByteReader& reader) {
  const uint16_t size = reader.U16();
  if (size == kUnreadable || !reader.ok()) {
    out += '?';
    return;
  }
  out += '"';
  for (const char c : AsText(reader.Bytes(size))) AppendCharacter(out, c, '"');
  out += '"';
}

void AppendValue(std::string& out, ValueFormat::Kind kind, ByteView bytes) {
  switch (kind) {
    case ValueFormat::Kind::kSigned:
    case ValueFormat::Kind::kEnumeration: {
      const int64_t value = SignedIn(bytes);
      if (value < 0) out += '-';
      AppendNumber(out, value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
      return;
    }
    case ValueFormat::Kind::kUnsigned:
      AppendNumber(out, NumberIn(bytes));
      return;
    case ValueFormat::Kind::kHex:
    case ValueFormat::Kind::kPointer:
      AppendHex(out, NumberIn(bytes));
      return;
    case ValueFormat::Kind::kCharacter:
      out += '\'';
      AppendCharacter(out, static_cast<char>(bytes[0]), '\'');
      out += '\'';
      return;
    case ValueFormat::Kind::kFloat:
      AppendFloat(out, bytes);
      return;
    case ValueFormat::Kind::kString:
      return;
  }
}

}  // namespace

void AppendNumber(std::string& out, uint64_t value, size_t width, char fill) {
  std::array<char, 20> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  const auto size = static_cast<size_t>(end - digits.data());
  if (size < width) Pad(out, width - size, fill);
  out.append(digits.data(), size);
}

void AppendDuration(std::string& out, uint64_t nanoseconds) {
  struct Unit {
    uint64_t limit, whole, part;  // one unit, and a thousandth of it
    std::string_view name;
  };
  constexpr uint64_t kSecond = 1'000'000'000;
  constexpr std::array<Unit, 5> kUnits = {{
      {1'000'000, 1000, 1, " us"},
      {kSecond, 1'000'000, 1000, " ms"},
      {60 * kSecond, kSecond, 1'000'000, "  s"},
      {3600 * kSecond, 60 * kSecond, 60'000'000, "  m"},
      {UINT64_MAX, 3600 * kSecond, 3'600'000'000, "  h"},
  }};
  const Unit* unit = kUnits.data();
  while (nanoseconds >= unit->limit && unit->limit != UINT64_MAX) ++unit;
  // The commonest case without a division.
  const uint64_t thousandths = unit->part == 1 ? nanoseconds : nanoseconds / unit->part;
  AppendNumber(out, thousandths / 1000, 4);
  const auto rest = static_cast<uint32_t>(thousandths % 1000);
  const std::array<char, 4> fraction = {'.', static_cast<char>('0' + rest / 100),
                                        static_cast<char>('0' + rest / 10 % 10),
                                        static_cast<char>('0' + rest % 10)};
  out.append(fraction.data(), fraction.size());
  out += unit->name;
}

void AppendSeconds(std::string& out, uint64_t nanoseconds, size_t width) {
  constexpr size_t kFraction = 10;  // with its point
  AppendNumber(out, nanoseconds / 1'000'000'000, width > kFraction ? width - kFraction : 0);
  out += '.';
  AppendNumber(out, nanoseconds % 1'000'000'000, kFraction - 1, '0');
}

void AppendValues(std::string& out, const std::vector<ValueFormat>& formats, ByteView values) {
  ByteReader reader(values);
  for (size_t i = 0; i < formats.size(); ++i) {
    if (i > 0) out += ", ";
    const ValueFormat& format = formats[i];
    if (format.kind == ValueFormat::Kind::kString) {
      AppendString(out, reader);
      continue;
    }
    const ByteView bytes = reader.Bytes(format.bytes);
    const bool known =
        !bytes.empty() && (format.kind != ValueFormat::Kind::kFloat || bytes.size() == 4 ||
                           bytes.size() == 8 || bytes.size() == 10 || bytes.size() == 16);
    if (known) {
      AppendValue(out, format.kind, bytes);
    } else {
      out += '?';
    }
  }
  if (formats.empty() && !values.empty()) out += '?';
}

std::string_view LossReasonText(uint32_t reason) {
  switch (static_cast<LossReason>(reason)) {
    case LossReason::kInterrupted:
      return "made by a signal handler while another call was recorded";
    case LossReason::kTooDeep:
      return "too many calls inside each other";
    case LossReason::kNoThread:
      return "too many threads";
    case LossReason::kNoSpace:
      return "no space to record them";
  }
  return "for an unknown reason";
}

}  // namespace stackreel::views
