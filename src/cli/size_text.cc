#include "cli/size_text.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>

#include "os/proc.h"

namespace stackreel::cli {

namespace {

// `most`: of the number before its unit.
Result<uint64_t> ParseNumber(const std::string& text, const char* option, uint64_t most) {
  uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  const std::string_view unit(result.ptr, static_cast<size_t>(end - result.ptr));
  const size_t power = unit.empty() ? 0 : std::string_view("BKMG").find(unit[0]);
  const bool is_number = unit.size() <= 1 && power != std::string_view::npos;
  if (result.ec == std::errc::invalid_argument || !is_number) {
    return Fail(ErrorKind::kUsage,
                fmt::format("{}: '{}' is not a number such as 512, 64K or 100M", option, text));
  }
  if (result.ec != std::errc{} || number > most >> (10 * power)) {
    return Fail(ErrorKind::kUsage, fmt::format("{}: {} is too large", option, text));
  }
  return number << (10 * power);
}

}  // namespace

Result<uint64_t> ParseSize(const std::string& text, const char* option) {
  constexpr uint64_t kMost = uint64_t{1} << 48;  // more than any file or memory has
  return ParseNumber(text, option, kMost);
}

Result<uint64_t> ParsePeriod(const std::string& text, const char* option) {
  constexpr uint64_t kMost = INT64_MAX;  // perf_event_open(2) takes 63 bits
  return ParseNumber(text, option, kMost);
}

Result<uint64_t> ParseFrequency(const std::string& text, const char* option) {
  constexpr int64_t kUsual = 100'000;
  if (text == "max") {
    return static_cast<uint64_t>(
        os::ReadNumberFile("/proc/sys/kernel/perf_event_max_sample_rate").value_or(kUsual));
  }
  return ParseSize(text, option);
}

std::string FormatSize(uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  const auto size = static_cast<double>(bytes);
  if (size < 10e6) return fmt::format("{:.1f} KB", size / 1e3);
  return size < 10e9 ? fmt::format("{:.1f} MB", size / 1e6) : fmt::format("{:.1f} GB", size / 1e9);
}

}  // namespace stackreel::cli
