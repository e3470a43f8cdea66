// Filters and triggers as they are typed, an option a line behind its letter: whatever they are,
// they are understood or refused, and what is understood can be told to the agent.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tracedata/filter_option.h"
#include "tracer/call_filters.h"

namespace {

using stackreel::tracedata::FilterOption;

constexpr std::string_view kLetters = "FNCTDto";  // in the order of FilterOption::Kind

std::vector<FilterOption> OptionsOf(std::string_view text) {
  std::vector<FilterOption> options;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    const size_t kind = line.empty() ? std::string_view::npos : kLetters.find(line.front());
    if (kind == std::string_view::npos) continue;
    options.push_back(
        {.kind = static_cast<FilterOption::Kind>(kind + 1), .text = std::string(line.substr(1))});
  }
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stackreel;
  const auto options = OptionsOf({reinterpret_cast<const char*>(data), size});
  const auto filters = tracer::CallFilters::Parse(options);
  if (!filters) {
    if (filters.error().kind != ErrorKind::kUsage || filters.error().message.empty()) std::abort();
    return 0;
  }
  if (filters->options != options || filters->functions.size() > options.size()) std::abort();
  if (filters->levels == 0 || filters->levels > tracedata::kLevels) std::abort();
  if ((filters->RootState() & tracedata::kLevelsGone) >= tracedata::kLevels) std::abort();
  for (const tracer::FunctionFilter& filter : filters->functions) {
    if (filter.actions.flags == 0 || filter.actions.levels > tracedata::kLevels ||
        !tracedata::IsOfFunctions(options[filter.option].kind)) {
      std::abort();
    }
    // Whether it matches is the pattern's affair; that it ends is ours.
    (void)filter.pattern.MatchesName("_ZN4shop6basket3addERKNS_4itemE");
    (void)filter.pattern.MatchesModule("/usr/lib/libshop.so.6", false);
  }
  return 0;
}
