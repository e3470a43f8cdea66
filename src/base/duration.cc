#include "base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace stackreel {

namespace {

struct Unit {
  std::string_view name;
  double nanoseconds;
};
constexpr auto kUnits = std::to_array<Unit>({{"", 1},
                                             {"ns", 1},
                                             {"nsec", 1},
                                             {"us", 1e3},
                                             {"usec", 1e3},
                                             {"ms", 1e6},
                                             {"msec", 1e6},
                                             {"s", 1e9},
                                             {"sec", 1e9},
                                             {"m", 60e9},
                                             {"min", 60e9}});

}  // namespace

Result<uint64_t> ParseDuration(std::string_view option, std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view name(end, static_cast<size_t>(text.data() + text.size() - end));
  const auto* const unit = std::ranges::find(kUnits, name, &Unit::name);
  // What is more than fits, and NaN, compare as false.
  const bool ok = code == std::errc() && unit != kUnits.end() && number >= 0 &&
                  number * unit->nanoseconds < 9e18;
  if (ok) return static_cast<uint64_t>(std::llround(number * unit->nanoseconds));
  return Fail(Error(ErrorKind::kUsage, fmt::format("{}: '{}' is not a time", option, text))
                  .WithCure("a number and its unit: 100ns, 12us, 1.5ms, 2s, 3m"));
}

}  // namespace stackreel
