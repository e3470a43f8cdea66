#include <fmt/format.h>

#include <array>

#include "views/script_text.h"

namespace stackreel::views {
namespace {

struct FieldName {
  std::string_view name;
  ScriptField field;
};
constexpr std::array kFieldNames = std::to_array<FieldName>({
    {"comm", kFieldComm},
    {"pid", kFieldPid},
    {"tid", kFieldTid},
    {"cpu", kFieldCpu},
    {"time", kFieldTime},
    {"period", kFieldPeriod},
    {"event", kFieldEvent},
    {"ip", kFieldIp},
    {"sym", kFieldSym},
    {"symoff", kFieldSymoff},
    {"dso", kFieldDso},
    {"srcline", kFieldSrcline},
    {"addr", kFieldAddr},
    {"trace", kFieldTrace},
    {"brstack", kFieldBrstack},
    {"brstacksym", kFieldBrstackSym},
    {"brstackoff", kFieldBrstackOff},
    {"cgroup", kFieldCgroup},
});

Result<uint32_t> FieldOf(std::string_view name) {
  for (const FieldName& known : kFieldNames) {
    if (known.name == name) return known.field;
  }
  return Fail(Error(ErrorKind::kUsage, fmt::format("there is no field '{}'; there are {}", name,
                                                   fmt::join(ScriptFieldNames(), ", ")))
                  .WithCure("-F comm,tid,time,event,ip,sym,dso"));
}

Status CheckWhole(uint32_t fields) {
  const bool has_address =
      (fields & (kFieldIp | kFieldAddr | kFieldBrstack | kFieldBrstackSym | kFieldBrstackOff)) != 0;
  if (has_address) return {};
  for (const ScriptField field : {kFieldSym, kFieldSymoff, kFieldDso, kFieldSrcline}) {
    if ((fields & field) == 0) continue;
    return Fail(Error(ErrorKind::kUsage, "a symbol, dso or srcline is printed beside its address")
                    .WithCure("add ip (or addr) to -F"));
  }
  return {};
}

}  // namespace

std::vector<std::string> ScriptFieldNames() {
  std::vector<std::string> names;
  names.reserve(kFieldNames.size());
  for (const FieldName& known : kFieldNames) names.emplace_back(known.name);
  return names;
}

Result<FieldSelection> FieldSelection::Parse(std::string_view text) {
  FieldSelection selection;
  uint32_t only = 0;
  bool changes = false;
  bool lists = false;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    const char sign = name.empty() ? '\0' : name.front();
    const bool is_change = sign == '+' || sign == '-';
    if (is_change) name.remove_prefix(1);
    TRY_ASSIGN(const uint32_t field, FieldOf(name));
    (is_change ? changes : lists) = true;
    (sign == '+' ? selection.add : sign == '-' ? selection.remove : only) |= field;
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (changes && lists) {
    return Fail(Error(ErrorKind::kUsage, "-F takes either a list or changes with + and -")
                    .WithCure("-F comm,tid,ip   or   -F +srcline,-period"));
  }
  if (changes) return selection;
  if ((only & kFieldSymoff) != 0) only |= kFieldSym;
  TRY(CheckWhole(only));
  selection.only = only;
  return selection;
}

}  // namespace stackreel::views
