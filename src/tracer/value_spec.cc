#include "tracer/value_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

namespace stackreel::tracer {

namespace {

using tracedata::ValueFormat;
using tracedata::ValueRead;
using tracedata::WordPlace;
using How = ValueRead::How;
using Kind = ValueFormat::Kind;

constexpr uint32_t kWordBytes = 8;
constexpr uint32_t kIntegerRegisters = 6, kVectorRegisters = 8;
constexpr uint32_t kMaxArgument = 64;
// Of libstdc++'s std::string: its text's address first, then its length, then room for short ones.
constexpr uint8_t kStringBytes = 32;
constexpr std::array<std::string_view, kIntegerRegisters> kArgumentRegisters = {"rdi", "rsi", "rdx",
                                                                                "rcx", "r8",  "r9"};

// One spec on its way to be understood.
class SpecParser {
 public:
  SpecParser(std::string_view all, std::string_view spec) : all_(all), spec_(spec), rest_(spec) {}

  Result<ValueSpec> Parse() {
    TRY(ParseWhich());
    TRY(ParseFormat());
    TRY(ParsePlace());
    if (!rest_.empty()) {
      return Wrong(rest_, "does not belong there", "/FORMAT, %PLACE, or a comma and the next");
    }
    return std::move(value_);
  }

 private:
  [[nodiscard]] std::unexpected<Error> Wrong(std::string_view what, std::string_view why,
                                             std::string_view can_stand_there) const {
    return WrongWay(what, why, fmt::format("what can stand there: {}", can_stand_there));
  }
  // The same, where it is known what was meant: that is the cure.
  [[nodiscard]] std::unexpected<Error> WrongWay(std::string_view what, std::string_view why,
                                                std::string cure) const {
    const auto column = static_cast<size_t>(what.data() - all_.data()) + 1;
    return Fail(Error(ErrorKind::kUsage,
                      fmt::format("'{}', at column {} of '{}', {}", what, column, all_, why))
                    .WithCure(std::move(cure)));
  }
  bool Take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view TakeWord(std::string_view ends) {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(ends));
    rest_.remove_prefix(word.size());
    return word;
  }
  static std::optional<uint32_t> NumberIn(std::string_view text) {
    uint32_t number = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
  }

  Status ParseWhich();
  Status ParseFormat();
  Status ParseFloat(std::string_view bits);
  Status ParsePlace();
  void SetWord(WordPlace::Kind kind, uint32_t number) {
    value_.read.first = {.kind = kind, .number = number};
    if (value_.read.how == How::kNumber && value_.read.bytes > kWordBytes) {
      value_.read.second = {.kind = kind, .number = number + kWordBytes};
    }
  }

  std::string_view all_, spec_, rest_;
  ValueSpec value_;
  bool is_float_ = false;
  uint32_t index_ = 0;  // from 0
};

Status SpecParser::ParseWhich() {
  constexpr std::string_view kWhich = "argN, fpargN (N from 1), or retval";
  const std::string_view word = TakeWord("/%");
  std::string_view name = word;
  if (name == "retval") {
    value_.is_result = true;
    return {};
  }
  is_float_ = name.starts_with("fp");
  if (is_float_) name.remove_prefix(2);
  if (word.empty() || !name.starts_with("arg")) {
    return Wrong(spec_, "is no argument and no return value", kWhich);
  }
  name.remove_prefix(3);
  const std::optional<uint32_t> number = NumberIn(name);
  if (!number || *number == 0 || *number > kMaxArgument) {
    return Wrong(word, fmt::format("has no number from 1 to {}", kMaxArgument), kWhich);
  }
  index_ = *number - 1;
  return {};
}

Status SpecParser::ParseFloat(std::string_view bits) {
  const std::optional<uint32_t> size = bits.empty() ? 64 : NumberIn(bits);
  if (size != 32 && size != 64 && size != 80) {
    return Wrong(bits, "is no size of a floating-point number", "32, 64, or 80 (long double)");
  }
  value_.format.kind = Kind::kFloat;
  value_.format.bytes = static_cast<uint8_t>(*size == 80 ? 16 : *size / 8);
  value_.read.bytes = value_.format.bytes;
  if (value_.is_result && *size == 80) value_.read.how = How::kX87;
  return {};
}

Status SpecParser::ParseFormat() {
  value_.format.kind = Kind::kNumber;
  const bool is_given = Take("/");
  std::string_view word = is_given ? TakeWord("%") : std::string_view();
  if (is_float_) return ParseFloat(word);
  if (!is_given) return {};
  constexpr std::string_view kFormats =
      "d (long), i (signed), u (unsigned), x (hexadecimal), each with 8, 16, 32 or 64 behind it; "
      "c (char), s (char*), S (std::string), p (pointer), or of retval f32, f64, f80";
  if (word.empty()) return Wrong(spec_, "has no format behind its /", kFormats);
  const char letter = word.front();
  const std::string_view bits = word.substr(1);
  switch (letter) {
    case 'd':
      break;
    case 'i':
      value_.format.kind = Kind::kSigned;
      break;
    case 'u':
      value_.format.kind = Kind::kUnsigned;
      break;
    case 'x':
      value_.format.kind = Kind::kHex;
      break;
    case 'c':
      value_.format.kind = Kind::kCharacter;
      break;
    case 'p':
      value_.format.kind = Kind::kFunction;
      break;
    case 's':
      value_.format.kind = Kind::kString;
      value_.read.how = How::kTerminated;
      break;
    case 'S':
      value_.format.kind = Kind::kString;
      value_.read.how = How::kObject;
      value_.read.bytes = kStringBytes;
      value_.read.length_offset = kWordBytes;
      break;
    case 'f':
      if (value_.is_result) {
        is_float_ = true;
        return ParseFloat(bits);
      }
      return Wrong(
          word, "is for retval",
          fmt::format("{}; floating-point arguments are fpargN, as in fparg1/64", kFormats));
    default:
      return Wrong(word, "is no format", kFormats);
  }
  if (value_.format.kind == Kind::kString || value_.format.kind == Kind::kFunction ||
      value_.format.kind == Kind::kCharacter) {
    if (!bits.empty()) return Wrong(word, "has a size, which this format has not", kFormats);
    if (value_.format.kind == Kind::kCharacter) value_.format.bytes = value_.read.bytes = 1;
    return {};
  }
  if (bits.empty()) return {};
  const std::optional<uint32_t> size = NumberIn(bits);
  if (size != 8 && size != 16 && size != 32 && size != 64) {
    return Wrong(word, "has no size that integers have", kFormats);
  }
  value_.format.bytes = value_.read.bytes = static_cast<uint8_t>(*size / 8);
  return {};
}

Status SpecParser::ParsePlace() {
  const std::string_view places =
      is_float_ ? "xmm0 ... xmm7, or stack+N: the Nth word above the return address"
                : "rdi, rsi, rdx, rcx, r8, r9, or stack+N: the Nth word above the return address; "
                  "what is in xmm0 ... xmm7 is fpargN";
  if (!Take("%")) {
    if (value_.is_result) {
      SetWord(is_float_ ? WordPlace::Kind::kVector : WordPlace::Kind::kInteger, 0);
    } else if (is_float_ && value_.format.bytes > kWordBytes) {
      return Wrong(spec_, "is on the stack, but where depends on the others", "%stack+N");
    } else if (is_float_) {
      const bool in_register = index_ < kVectorRegisters;
      SetWord(in_register ? WordPlace::Kind::kVector : WordPlace::Kind::kStack,
              in_register ? 2 * index_ : (index_ - kVectorRegisters + 1) * kWordBytes);
    } else {
      const bool in_register = index_ < kIntegerRegisters;
      SetWord(in_register ? WordPlace::Kind::kInteger : WordPlace::Kind::kStack,
              in_register ? index_ : (index_ - kIntegerRegisters + 1) * kWordBytes);
    }
    return {};
  }
  const std::string_view word = TakeWord("/");
  if (value_.is_result) return Wrong(word, "cannot be chosen for a return value", "a comma");
  if (word.starts_with("xmm") && !is_float_) {
    const uint32_t number = NumberIn(word.substr(3)).value_or(index_);
    return WrongWay(word, "has floating-point arguments",
                    fmt::format("fparg{0}, or with its size fparg{0}/64", number + 1));
  }
  if (!rest_.empty()) {
    return WrongWay(
        rest_, "is behind the place",
        fmt::format("{}{}%{}", spec_.substr(0, spec_.find_first_of("/%")), rest_, word));
  }
  if (const auto* at = std::ranges::find(kArgumentRegisters, word);
      at != kArgumentRegisters.end() && !is_float_) {
    SetWord(WordPlace::Kind::kInteger, static_cast<uint32_t>(at - kArgumentRegisters.begin()));
    return {};
  }
  if (word.starts_with("xmm") && is_float_ && value_.format.bytes <= kWordBytes) {
    const std::optional<uint32_t> number = NumberIn(word.substr(3));
    if (number && *number < kVectorRegisters) {
      SetWord(WordPlace::Kind::kVector, 2 * *number);
      return {};
    }
  }
  if (word.starts_with("stack")) {
    std::string_view words = word.substr(5);
    if (words.starts_with('+')) words.remove_prefix(1);
    const std::optional<uint32_t> number = NumberIn(words);
    if (number && *number != 0 && *number <= 4096) {
      SetWord(WordPlace::Kind::kStack, *number * kWordBytes);
      return {};
    }
  }
  return Wrong(word, "is no place of such an argument", places);
}

// Whether what stands behind an @ is about values, not a module.
bool LooksLikeSpecs(std::string_view text) {
  return text.starts_with("arg") || text.starts_with("fparg") || text.starts_with("retval") ||
         text.find_first_of("/%,") != std::string_view::npos;
}

}  // namespace

Result<std::vector<ValueSpec>> ParseValueSpecs(std::string_view text) {
  std::vector<ValueSpec> specs;
  std::string_view rest = text;
  while (true) {
    const std::string_view one = rest.substr(0, rest.find(','));
    TRY_ASSIGN(ValueSpec spec, SpecParser(text, one).Parse());
    const bool twice = spec.is_result && std::ranges::any_of(specs, &ValueSpec::is_result);
    if (twice) {
      return Fail(ErrorKind::kUsage, fmt::format("'{}' has more than one retval", text));
    }
    specs.push_back(std::move(spec));
    if (one.size() == rest.size()) return specs;
    rest.remove_prefix(one.size() + 1);
  }
}

Result<ValueChoice> ParseValueChoice(std::string_view text, bool results) {
  const size_t at = text.rfind('@');
  const bool has_specs = at != std::string_view::npos && LooksLikeSpecs(text.substr(at + 1));
  TRY_ASSIGN(FunctionPattern pattern,
             FunctionPattern::Parse(has_specs ? text.substr(0, at) : text));
  std::vector<ValueSpec> specs;
  if (has_specs) {
    TRY_ASSIGN(specs, ParseValueSpecs(text.substr(at + 1)));
  }
  return ValueChoice{.pattern = std::move(pattern),
                     .by_prototype = !has_specs,
                     .results = results,
                     .specs = std::move(specs)};
}

}  // namespace stackreel::tracer
