#include "tracer/call_filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "base/duration.h"

namespace stackreel::tracer {

namespace {

using tracedata::FilterOption;

constexpr const char* kTriggerCure =
    "triggers there are: depth=N, filter, notrace, time=TIME, trace, trace_off, trace_on";

struct PlainTrigger {
  std::string_view name;
  uint32_t flag;
};
constexpr auto kPlainTriggers = std::to_array<PlainTrigger>({{"filter", tracedata::kBegins},
                                                             {"notrace", tracedata::kEnds},
                                                             {"trace", tracedata::kAlways},
                                                             {"trace_on", tracedata::kTraceOn},
                                                             {"traceon", tracedata::kTraceOn},
                                                             {"trace_off", tracedata::kTraceOff},
                                                             {"traceoff", tracedata::kTraceOff}});

// More levels than a thread's open calls are as good as no limit.
Result<uint32_t> ParseLevels(std::string_view option, std::string_view text) {
  uint64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = end == text.data() + text.size() && code != std::errc::invalid_argument;
  if (is_number && code == std::errc::result_out_of_range) return tracedata::kLevels;
  if (!is_number || number == 0) {
    Error error(ErrorKind::kUsage,
                fmt::format("{}: '{}' is not a number of levels, 1 or more", option, text));
    if (is_number && option != "-D")
      error.cure = "FUNCTION@notrace leaves it out, and what it calls";
    return Fail(std::move(error));
  }
  return static_cast<uint32_t>(std::min<uint64_t>(number, tracedata::kLevels));
}

Status AddTrigger(std::string_view trigger, FunctionFilter& filter) {
  const size_t equals = trigger.find('=');
  const std::string_view name = trigger.substr(0, equals);
  if (equals != std::string_view::npos && name == "depth") {
    TRY_ASSIGN(const uint32_t levels, ParseLevels("-T depth", trigger.substr(equals + 1)));
    filter.actions.flags |= tracedata::kSetsLevels;
    filter.actions.levels = static_cast<uint16_t>(levels);
    return {};
  }
  if (equals != std::string_view::npos && name == "time") {
    TRY_ASSIGN(filter.least_nanoseconds, ParseDuration("-T time", trigger.substr(equals + 1)));
    filter.actions.flags |= tracedata::kSetsDuration;
    return {};
  }
  const auto* plain = std::ranges::find(kPlainTriggers, trigger, &PlainTrigger::name);
  if (plain == kPlainTriggers.end()) {
    return Fail(Error(ErrorKind::kUsage, fmt::format("-T: there is no trigger '{}'", trigger))
                    .WithCure(kTriggerCure));
  }
  filter.actions.flags |= plain->flag;
  return {};
}

// FUNCTION[@MODULE]@TRIGGER[,TRIGGER…]
Result<FunctionFilter> ParseTrigger(std::string_view text) {
  const size_t at = text.rfind('@');
  if (at == std::string_view::npos || at + 1 == text.size()) {
    return Fail(Error(ErrorKind::kUsage, fmt::format("-T: '{}' names no trigger", text))
                    .WithCure(fmt::format("FUNCTION@TRIGGER or FUNCTION@MODULE@TRIGGER; {}",
                                          kTriggerCure)));
  }
  TRY_ASSIGN(FunctionPattern pattern, FunctionPattern::Parse(text.substr(0, at)));
  FunctionFilter filter{
      .pattern = std::move(pattern), .option = 0, .actions = {}, .least_nanoseconds = {}};
  for (std::string_view rest = text.substr(at + 1);;) {
    const size_t comma = rest.find(',');
    TRY(AddTrigger(rest.substr(0, comma), filter));
    if (comma == std::string_view::npos) return filter;
    rest.remove_prefix(comma + 1);
  }
}

Result<FunctionFilter> ParseFunctions(const FilterOption& option) {
  using Kind = FilterOption::Kind;
  if (option.kind == Kind::kTrigger) return ParseTrigger(option.text);
  TRY_ASSIGN(FunctionPattern pattern, FunctionPattern::Parse(option.text));
  const uint32_t flag = option.kind == Kind::kBegin ? tracedata::kBegins
                        : option.kind == Kind::kEnd ? tracedata::kEnds
                                                    : tracedata::kLeadsHere;
  return FunctionFilter{.pattern = std::move(pattern),
                        .option = 0,
                        .actions = {.flags = flag},
                        .least_nanoseconds = {}};
}

}  // namespace

Result<CallFilters> CallFilters::Parse(std::span<const FilterOption> options) {
  using Kind = FilterOption::Kind;
  CallFilters filters;
  filters.options.assign(options.begin(), options.end());
  for (size_t i = 0; i < options.size(); ++i) {
    const FilterOption& option = options[i];
    if (option.kind == Kind::kDepth) {
      TRY_ASSIGN(filters.levels, ParseLevels("-D", option.text));
    } else if (option.kind == Kind::kTime) {
      TRY_ASSIGN(filters.least_nanoseconds, ParseDuration("-t", option.text));
    } else if (option.kind == Kind::kTracing) {
      if (option.text != "on" && option.text != "off") {
        return Fail(ErrorKind::kUsage,
                    fmt::format("--tracing: '{}' is neither on nor off", option.text));
      }
      filters.tracing = option.text == "on";
    } else {
      TRY_ASSIGN(FunctionFilter filter, ParseFunctions(option));
      filter.option = i;
      filters.functions.push_back(std::move(filter));
    }
  }
  return filters;
}

uint32_t CallFilters::RootState() const {
  uint32_t state = tracedata::kLevels - levels;
  for (const FunctionFilter& filter : functions) {
    if ((filter.actions.flags & tracedata::kBegins) != 0) state |= tracedata::kOutside;
    if ((filter.actions.flags & tracedata::kLeadsHere) != 0) state |= tracedata::kHolding;
  }
  return state;
}

bool CallFilters::SwitchTracing() const {
  return std::ranges::any_of(functions, [](const FunctionFilter& filter) {
    return (filter.actions.flags & (tracedata::kTraceOn | tracedata::kTraceOff)) != 0;
  });
}

}  // namespace stackreel::tracer
