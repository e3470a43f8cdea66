#include "views/trace_text_pieces.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace stackreel::views {

namespace {

constexpr std::string_view kSpaces = "                                ";

void Pad(std::string& out, size_t count, char fill) {
  if (fill == ' ' && count <= kSpaces.size()) {
    out.append(kSpaces.data(), count);
  } else {
    out.append(count, fill);
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

}  // namespace stackreel::views
