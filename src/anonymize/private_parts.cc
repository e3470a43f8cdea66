#include "anonymize/private_parts.h"

#include <algorithm>

namespace stackreel::anonymize {

using perfdata::Sensitivity;
using std::string_view;

namespace {

std::vector<string_view> Split(string_view text, char separator) {
  std::vector<string_view> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// "perf-12.map", "jitted-12-3.so": the numbers are told apart by themselves.
bool IsOfJit(string_view name) {
  const auto is = [&](string_view before, string_view behind) {
    return name.size() > before.size() + behind.size() && name.starts_with(before) &&
           name.substr(before.size()).find_first_not_of("0123456789-") ==
               name.size() - before.size() - behind.size() &&
           name.ends_with(behind);
  };
  return is("perf-", ".map") || is("jit-", ".dump") || is("jitted-", ".so");
}

// "vmlinux-6.1.0-13-acme"; "vmlinux-6.1" is everybody's.
bool IsReleaseOfKernel(string_view name) {
  if (!name.starts_with("vmlinux-") && !name.starts_with("vmlinuz-")) return false;
  return name.find_first_not_of("0123456789.", name.find('-') + 1) != string_view::npos;
}

bool HidesModule(string_view path, const PrivacyRules& rules) {
  return rules.level >= Level::kSymbols && !IsPublicModule(path, rules.publics);
}

// "[ext4]", "[anon:NAME]", "[kernel.kallsyms]_text".
string_view PrivateInBrackets(string_view name, const PrivacyRules& rules) {
  const string_view inner = name.substr(1, std::min(name.find(']'), name.size()) - 1);
  if (IsPublicMemory(inner)) return "";
  for (const string_view named : {"anon:", "anon_shmem:"}) {
    if (inner.starts_with(named)) return inner.substr(named.size());
  }
  if (inner.contains(':') || inner.starts_with("guest.kernel.kallsyms.")) return "";
  return HidesModule(name, rules) ? inner : "";
}

void PartsOfPath(string_view path, const PrivacyRules& rules, std::vector<string_view>& out) {
  path = WithoutDeleted(path);
  if (path.empty() || path.starts_with("//")) return;
  const string_view module = PrivateModuleName(path, rules);
  if (path[0] == '[' || path.contains(":")) {
    if (!module.empty()) out.push_back(module);
    return;
  }
  const std::vector<string_view> parts = Split(path, '/');
  const bool of_system = path[0] == '/' && parts.size() > 2 &&
                         IsOfSystem(parts[1], parts.size() > 3 ? parts[2] : string_view());
  const bool hides = HidesModule(path, rules);
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const string_view part = parts[i];
    const string_view before = i == 0 ? string_view() : parts[i - 1];
    const bool is_home = before == "home" || before == "Users";
    if (part.empty() || IsNumber(part) || (IsPublicFolder(part) && !is_home)) continue;
    const bool is_release = of_system && before == "modules";
    const bool stays = is_release ? part.find_first_not_of("0123456789.") == string_view::npos
                                  : of_system && !hides && !is_home;
    if (!stays) out.push_back(part);
  }
  if (!module.empty()) {
    out.push_back(module);
  } else if (IsReleaseOfKernel(parts.back())) {
    out.push_back(parts.back());
  } else if (!of_system && !IsNameOfCode(parts.back()) && !IsOfJit(parts.back())) {
    out.push_back(parts.back());
  }
}

// Words, with what perf puts together left out.
void PartsOfEventName(string_view name, const PrivacyRules& rules, std::vector<string_view>& out) {
  constexpr string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  constexpr string_view kModifiers = "ukhHGpPIDSWeb", kHex = "0123456789abcdefABCDEF";
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find_first_not_of(kLetters, at), name.size());
    const string_view word = name.substr(at, end - at);
    at = word.empty() ? end + 1 : end;
    if (word.empty()) continue;
    if (end < name.size() && name[end] == ':' && IsPublicTracepointSystem(word)) {
      // What follows is the kernel's.
      at = std::min(name.find_first_not_of(kLetters, end + 1), name.size());
      continue;
    }
    const string_view digits = word.starts_with("0x")  ? word.substr(2)
                               : word.starts_with("r") ? word.substr(1)
                                                       : word;
    const bool is_number = digits.find_first_not_of(kHex) == string_view::npos;
    const bool are_modifiers = word.find_first_not_of(kModifiers) == string_view::npos;
    const bool is_pmu = std::ranges::any_of(rules.pmu_names,
                                            [word](const auto& pmu) { return pmu.second == word; });
    if (!is_number && !are_modifiers && !is_pmu && !IsPublicEventWord(word)) out.push_back(word);
  }
}

void PartsOfCgroup(string_view path, std::vector<string_view>& out) {
  for (const string_view part : Split(path, '/')) {
    if (!IsPublicCgroup(part)) out.push_back(part);
  }
}

}  // namespace

string_view PrivateModuleName(string_view path, const PrivacyRules& rules) {
  path = WithoutDeleted(path);
  if (path.empty() || path.starts_with("//")) return "";
  if (path[0] == '[') return PrivateInBrackets(path, rules);
  for (const string_view named : {"/memfd:", "anon_inode:", "socket:", "pipe:"}) {
    if (!path.starts_with(named)) continue;
    const string_view name = path.substr(named.size());
    return name.starts_with('[') ? "" : name;
  }
  const string_view file = path.substr(path.rfind('/') + 1);
  const bool is_memory = path == "/anon_hugepage" || path == "/dev/zero" || path == "/dev/kvm" ||
                         path.starts_with("/SYSV");
  return HidesModule(path, rules) && !IsOfJit(file) && !is_memory ? file : "";
}

bool IsPseudonymOfFunction(string_view name) {
  constexpr string_view kPrefix = "f_";
  constexpr size_t kLetters = 10;
  return name.starts_with(kPrefix) && name.size() == kPrefix.size() + kLetters &&
         std::ranges::all_of(name.substr(kPrefix.size()),
                             [](char c) { return c >= 'g' && c <= 'z'; });
}

std::vector<string_view> PrivateParts(Sensitivity sensitivity, string_view text,
                                      const PrivacyRules& rules) {
  std::vector<string_view> parts;
  if (rules.level < Level::kIdentity || text.empty()) return parts;
  switch (sensitivity) {
    case Sensitivity::kComm:
      if (!IsPublicComm(text, rules.publics)) parts.push_back(text);
      break;
    case Sensitivity::kSymbol:
      if (rules.level >= Level::kSymbols && !IsPublicSymbol(text)) parts.push_back(text);
      break;
    case Sensitivity::kRelease:
      // "6.1" is everybody's.
      if (std::ranges::count(text, '.') > 1 ||
          text.find_first_not_of("0123456789.") != string_view::npos) {
        parts.push_back(text);
      }
      break;
    case Sensitivity::kMachine:
      if (text != CpuMakerIn(text)) parts.push_back(text);
      break;
    case Sensitivity::kHostName:
      parts.push_back(text);
      break;
    case Sensitivity::kPath:
      PartsOfPath(text, rules, parts);
      break;
    case Sensitivity::kEventName:
      PartsOfEventName(text, rules, parts);
      break;
    case Sensitivity::kCgroupPath:
      PartsOfCgroup(text, parts);
      break;
    default:
      break;
  }
  return parts;
}

}  // namespace stackreel::anonymize
