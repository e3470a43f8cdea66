#include "analyze/function_match.h"

#include <string>

#include "profile/filter.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbol_version.h"

namespace stackreel::analyze {
namespace {

using profile::MatchesPattern;

bool MatchesName(std::string_view symbol, std::string_view pattern) {
  using symbolize::NameStyle;
  const std::string_view name = symbolize::WithoutVersion(symbol);
  return MatchesPattern(symbolize::Demangle(name, NameStyle::kName), pattern) ||
         MatchesPattern(symbolize::Demangle(name, NameStyle::kSignature), pattern);
}

bool MatchesModule(const tracedata::TraceModule* module, std::string_view pattern) {
  if (module == nullptr) return pattern == "*";
  const std::string_view path = module->path;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  if (MatchesPattern(file, pattern)) return true;
  const size_t suffix = file.find(".so");
  return suffix != std::string_view::npos && (MatchesPattern(file.substr(0, suffix + 3), pattern) ||
                                              MatchesPattern(file.substr(0, suffix), pattern));
}

}  // namespace

bool MatchesFunction(const tracedata::TraceSource& source, const tracedata::TraceFunction& function,
                     std::string_view pattern) {
  if (function.name == pattern || MatchesName(function.name, pattern)) return true;
  const size_t at = pattern.rfind('@');
  return at != std::string_view::npos && MatchesName(function.name, pattern.substr(0, at)) &&
         MatchesModule(source.ModuleOf(function), pattern.substr(at + 1));
}

}  // namespace stackreel::analyze
