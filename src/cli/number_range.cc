#include "cli/number_range.h"

#include <fmt/format.h>

#include <charconv>

namespace stackreel::cli {
namespace {

template <typename T>
CLI::Validator RangeOf(const char* what, T least, T most) {
  CLI::Validator range(
      [what, least, most](std::string& text) -> std::string {
        T value{};
        const char* end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, value);
        const bool good = parsed.ec == std::errc() && parsed.ptr == end && least <= value &&
                          value <= most;  // also false for NaN
        if (good) return "";
        return fmt::format("'{}' is not a {} from {} to {}", text, what, least, most);
      },
      "");
  return range;
}

}  // namespace

CLI::Validator WholeNumber(int64_t least, int64_t most) {
  return RangeOf("whole number", least, most);
}

CLI::Validator Number(double least, double most) { return RangeOf("number", least, most); }

}  // namespace stackreel::cli
