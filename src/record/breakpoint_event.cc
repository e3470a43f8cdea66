#include "record/breakpoint_event.h"

#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>

#include <charconv>
#include <optional>
#include <string_view>

namespace stackreel::record {

namespace {

constexpr std::string_view kPrefix = "mem:";

std::optional<uint64_t> ParseWhole(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  uint64_t value = 0;
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  if (text.empty() || result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

// The bits of HW_BREAKPOINT_R, _W and _X that `text` names; nothing if it is no such text.
std::optional<uint32_t> ParseAccess(std::string_view text) {
  uint32_t access = 0;
  for (const char c : text) {
    const uint32_t bit = c == 'r'   ? HW_BREAKPOINT_R
                         : c == 'w' ? HW_BREAKPOINT_W
                         : c == 'x' ? HW_BREAKPOINT_X
                                    : 0;
    if (bit == 0 || (access & bit) != 0) return std::nullopt;
    access |= bit;
  }
  return access == 0 ? std::nullopt : std::optional(access);
}

}  // namespace

bool IsBreakpoint(const std::string& text) { return text.starts_with(kPrefix); }

Result<std::string> ParseBreakpoint(const std::string& text, perfdata::Attr& attr) {
  const auto bad = [&](const std::string& why) {
    return Fail(ErrorKind::kUsage, fmt::format("event '{}': {}; a breakpoint is "
                                               "mem:0xADDRESS[/LENGTH][:rwx]",
                                               text, why));
  };
  std::string_view rest = std::string_view(text).substr(kPrefix.size());
  const std::string_view place = rest.substr(0, rest.find(':'));
  rest.remove_prefix(std::min(place.size() + 1, rest.size()));
  const size_t slash = std::min(place.find('/'), place.size());
  const auto address = ParseWhole(place.substr(0, slash));
  if (!address) return bad(fmt::format("'{}' is no address", place.substr(0, slash)));

  uint32_t access = HW_BREAKPOINT_RW;
  const std::string_view word = rest.substr(0, rest.find(':'));
  if (const auto given = ParseAccess(word)) {
    access = *given;
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  if ((access & HW_BREAKPOINT_X) != 0 && access != HW_BREAKPOINT_X) {
    return bad("x goes with neither r nor w");
  }
  uint64_t length = access == HW_BREAKPOINT_X ? sizeof(long) : uint64_t{HW_BREAKPOINT_LEN_4};
  if (slash < place.size()) {
    const auto given = ParseWhole(place.substr(slash + 1));
    if (!given || (*given != 1 && *given != 2 && *given != 4 && *given != 8)) {
      return bad(fmt::format("a length of '{}' is not 1, 2, 4 or 8", place.substr(slash + 1)));
    }
    length = *given;
  }
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = access;
  attr.config1 = *address;
  attr.config2 = length;
  return std::string(rest);
}

}  // namespace stackreel::record
