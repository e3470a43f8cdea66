#include "tracer/function_values.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tracer/function_choice.h"

namespace stackreel::tracer {

namespace {

using tracedata::ValueFormat;

// GCC's copies of functions that take other arguments than their prototypes say.
bool IsChangedCopy(std::string_view name) {
  constexpr std::array<std::string_view, 3> kMarks = {".constprop.", ".isra.", ".part."};
  return std::ranges::any_of(kMarks, [name](std::string_view mark) { return name.contains(mark); });
}

bool HasText(const std::vector<PlannedValue>& values) {
  return std::ranges::any_of(values, [](const PlannedValue& value) {
    return value.format.kind == ValueFormat::Kind::kString;
  });
}

// Takes from `from` what is of one side.
std::vector<ValueSpec> SideOf(const std::vector<ValueSpec>& from, bool results) {
  std::vector<ValueSpec> side;
  for (const ValueSpec& spec : from) {
    if (spec.is_result == results) side.push_back(spec);
  }
  return side;
}

}  // namespace

bool FunctionValues::Matches(size_t choice, const TargetModule& module,
                             const ModuleFunction& function) const {
  const FunctionPattern& pattern = options_.choices[choice].pattern;
  return MatchesModule(pattern, module) && MatchesFunction(pattern, function);
}

FunctionValues::Wish FunctionValues::WishFor(bool results, const TargetModule& module,
                                             const ModuleFunction& function) const {
  for (size_t i = options_.choices.size(); i > 0; --i) {
    const ValueChoice& choice = options_.choices[i - 1];
    const auto is_of_side = [results](const ValueSpec& spec) { return spec.is_result == results; };
    const bool concerned = choice.by_prototype ? choice.results == results
                                               : std::ranges::any_of(choice.specs, is_of_side);
    if (!concerned || !Matches(i - 1, module, function)) continue;
    if (choice.by_prototype) return {.by_prototype = true};
    return {.specs = &choice.specs};
  }
  return {.by_prototype = options_.all};
}

dwarf::SourceIndex* FunctionValues::IndexOf(const TargetModule& module, uint32_t pid) {
  const auto [at, is_new] = indexes_.try_emplace(module.path + module.build_id.ToHex());
  if (!is_new) return at->second.get();
  symbolize::ModuleFiles files = FilesOf(module, pid);
  for (const FileImagePtr& file : {files.debug, module.file}) {
    if (file == nullptr) continue;
    auto index = dwarf::SourceIndex::Open(file, {files.alt_file, files.dwo_file}, {.lines = false});
    if (!index) continue;
    at->second = std::move(*index);
    break;
  }
  return at->second.get();
}

ValuePlan FunctionValues::ByPrototype(const TargetModule& module, uint32_t pid,
                                      const ModuleFunction& function) {
  const auto without = [this](const std::string& why) {
    ++without_[why];
    return ValuePlan();
  };
  dwarf::SourceIndex* index = IndexOf(module, pid);
  if (index == nullptr) return without("no debug information");
  const bool is_copy = IsChangedCopy(function.name);
  const auto prototype =
      is_copy ? std::unexpected(std::string("the compiler has changed how it is called"))
              : index->PrototypeAt(function.start);
  if (!prototype) return without(prototype.error());
  if (!prototype->why_incomplete.empty())
    ++without_["of some arguments: " + prototype->why_incomplete];
  return PlanValues(*prototype);
}

Status FunctionValues::AddFormats(const std::vector<PlannedValue>& values,
                                  std::vector<ValueFormat>& formats) {
  for (const PlannedValue& value : values) {
    ValueFormat& format = formats.emplace_back(value.format);
    if (value.enumeration == nullptr) continue;
    const auto id = static_cast<uint32_t>(enumerations_.size()) + 1;
    const auto [at, is_new] = enumerations_.try_emplace(value.enumeration, id);
    format.enumeration = at->second;
    if (!is_new) continue;
    tracedata::TraceEnumeration fact{.id = id, .name = value.enumeration->name, .names = {}};
    for (const auto& [number, name] : value.enumeration->names)
      fact.names.push_back({number, name});
    TRY(facts_(fact));
  }
  return {};
}

Result<RecordedValues> FunctionValues::Of(const TargetModule& module, uint32_t pid,
                                          const ModuleFunction& function) {
  const Wish arguments = WishFor(false, module, function);
  const Wish results = WishFor(true, module, function);
  ValuePlan plan;
  if (arguments.by_prototype || results.by_prototype) {
    plan = ByPrototype(module, pid, function);
    if (!arguments.by_prototype) plan.arguments.clear();
    if (!results.by_prototype) plan.results.clear();
  }
  if (arguments.specs != nullptr) {
    plan.arguments = PlanValues(SideOf(*arguments.specs, false)).arguments;
  }
  if (results.specs != nullptr) plan.results = PlanValues(SideOf(*results.specs, true)).results;
  RecordedValues values;
  values.reads = EncodeReads(plan);
  reads_texts_ = reads_texts_ || HasText(plan.arguments) || HasText(plan.results);
  TRY(AddFormats(plan.arguments, values.arguments));
  TRY(AddFormats(plan.results, values.results));
  return values;
}

}  // namespace stackreel::tracer
