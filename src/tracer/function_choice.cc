#include "tracer/function_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "symbolize/near_names.h"
#include "symbolize/symbol_version.h"

namespace stackreel::tracer {

namespace {

// Whether a name is rather meant for others than another name of the same function.
bool IsPlainer(std::string_view name, std::string_view than) {
  name = symbolize::WithoutVersion(name);
  than = symbolize::WithoutVersion(than);
  // _Z is how C++ names begin.
  if (than.empty()) return true;
  if (name.starts_with("_Z") || than.starts_with("_Z")) return false;
  const auto underscores = [](std::string_view text) {
    return std::min(text.find_first_not_of('_'), text.size());
  };
  if (underscores(name) != underscores(than)) return underscores(name) < underscores(than);
  // What the C library has for large files is the function itself.
  return than.size() == name.size() + 2 && than.starts_with(name) && than.ends_with("64");
}

}  // namespace

std::string TraceName(const ModuleFunction& function, const FunctionPattern* pattern) {
  std::string_view best;
  const auto consider = [&](std::string_view name, const FunctionPattern* meant) {
    if (meant != nullptr && !meant->MatchesName(name)) return;
    if (IsPlainer(name, best)) best = name;
  };
  for (const FunctionPattern* meant : {pattern, static_cast<const FunctionPattern*>(nullptr)}) {
    if (!best.empty()) break;
    consider(function.name, meant);
    for (const std::string_view name : function.others) consider(name, meant);
  }
  if (!best.empty()) return std::string(symbolize::WithoutVersion(best));
  return fmt::format("func_{:x}", function.start.value);
}

bool MatchesModule(const FunctionPattern& pattern, const TargetModule& module) {
  return pattern.MatchesModule(module.path, module.is_program);
}

bool MatchesFunction(const FunctionPattern& pattern, const ModuleFunction& function) {
  if (function.name.empty()) return pattern.MatchesName(TraceName(function));
  return pattern.MatchesName(function.name) ||
         std::ranges::any_of(function.others,
                             [&](std::string_view name) { return pattern.MatchesName(name); });
}

std::vector<size_t> PatternsFor(std::span<const PatternChoice> patterns,
                                const TargetModule& module) {
  std::vector<size_t> concerned;
  for (size_t i = patterns.size(); i > 0; --i) {
    if (MatchesModule(patterns[i - 1].pattern, module)) concerned.push_back(i - 1);
  }
  return concerned;
}

Choice ChoiceOf(std::span<const PatternChoice> patterns, std::span<const size_t> concerned,
                const ModuleFunction& function, std::vector<bool>& matched) {
  Choice choice = Choice::kNotNamed;
  for (const size_t i : concerned) {
    const bool is_decided = choice != Choice::kNotNamed;
    if (is_decided && matched[i]) continue;
    if (!MatchesFunction(patterns[i].pattern, function)) continue;
    matched[i] = true;
    if (!is_decided) choice = patterns[i].choice;
  }
  return choice;
}

Error NothingMatches(const FunctionPattern& pattern, std::span<const TargetModule> modules) {
  const std::string& text = pattern.text();
  std::vector<std::string_view> names;
  size_t meant = 0;
  size_t functions = 0;
  std::string untraceable;
  for (const TargetModule& module : modules) {
    if (!module.is_mapped || !MatchesModule(pattern, module)) continue;
    ++meant;
    if (module.code == nullptr) {
      untraceable += fmt::format("; {}: {}", module.path, module.why_not);
      continue;
    }
    functions += module.code->functions().size();
    for (const ModuleFunction& function : module.code->functions()) {
      if (!function.name.empty()) names.push_back(function.name);
    }
  }
  const std::string wanted = text.substr(0, text.rfind('@'));
  if (meant == 0) {
    Error error(ErrorKind::kNotFound,
                fmt::format("pattern '{}': no module of that name is mapped", text));
    std::string cure = "modules there are:";
    for (const TargetModule& module : modules) {
      if (module.is_mapped) cure += " " + module.path.substr(module.path.rfind('/') + 1);
    }
    return std::move(error).WithCure(std::move(cure));
  }
  Error error(ErrorKind::kNotFound, fmt::format("pattern '{}' matches none of {} functions{}", text,
                                                functions, untraceable));
  const std::vector<std::string> near = symbolize::NearNames(wanted, names);
  if (!near.empty()) {
    return std::move(error).WithCure(fmt::format("near: {}", fmt::join(near, ", ")));
  }
  if (names.empty()) {
    return std::move(error).WithCure(
        "it is stripped: install its debug symbols, or name functions of a library, NAME@MODULE");
  }
  return std::move(error).WithCure(
      fmt::format("functions of all modules: '{}@*'; every function: -P .", wanted));
}

}  // namespace stackreel::tracer
