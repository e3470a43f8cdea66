// Of Pseudonyms: paths, and names of memory that has none.
#include <algorithm>
#include <array>
#include <string>

#include "anonymize/pseudonyms.h"

namespace stackreel::anonymize {

using std::string_view;

namespace {

string_view ExtensionOfCode(string_view name) {
  return name.contains(".so") ? ".so" : name.contains(".ko") ? ".ko" : "";
}

}  // namespace

std::string Release(string_view text) {
  size_t end = 0;
  for (int part = 0; part < 2; ++part) {
    size_t digits = end;
    if (part != 0 && (digits >= text.size() || text[digits++] != '.')) break;
    const size_t behind = std::min(text.find_first_not_of(kDigits, digits), text.size());
    if (behind == digits) break;
    end = behind;
  }
  return std::string(text.substr(0, end));
}

bool Pseudonyms::IsPublic(string_view path) const {
  return IsPublicModule(WithoutDeleted(path), publics_);
}

std::string Pseudonyms::Path(string_view path) {
  if (path.empty()) return "";
  if (path.ends_with(kDeleted)) {
    return Path(WithoutDeleted(path)) + std::string(kDeleted);
  }
  if (path[0] == '[') return Bracketed(path);
  // Memory that has no file, as the kernel writes it.
  constexpr auto kMemory = std::to_array<string_view>(
      {"//anon", "//toolong", "//enomem", "/anon_hugepage", "/dev/zero", "/SYSV00000000", "/",
       "anon_inode:[perf_event]", "anon_inode:[io_uring]", "/dev/kvm"});
  if (std::ranges::find(kMemory, path) != kMemory.end()) return std::string(path);
  for (const string_view named : {"/memfd:", "anon_inode:", "socket:", "pipe:", "/SYSV"}) {
    if (path.starts_with(named)) return NameOf(std::string(named) + "n_", path);
  }
  return FilePath(path);
}

// "[heap]", "[kernel.kallsyms]_text", "[anon:NAME]", "[stack:PID]", and kernel modules: "[ext4]".
std::string Pseudonyms::Bracketed(string_view name) {
  constexpr auto kBehind = std::to_array<string_view>({"", "_text", "_stext", "_start"});
  const size_t close = std::min(name.find(']'), name.size());
  const string_view inner = name.substr(1, close - 1);
  const string_view behind = name.substr(std::min(close + 1, name.size()));
  const auto bracketed = [&](std::string_view text) {
    const bool is_known = std::ranges::find(kBehind, behind) != kBehind.end();
    return "[" + std::string(text) + "]" + (is_known ? std::string(behind) : NameOf("n_", behind));
  };
  if (IsPublicMemory(inner)) return bracketed(inner);
  for (const string_view of_process : {"stack:", "guest.kernel.kallsyms."}) {
    if (inner.starts_with(of_process) && IsNumber(inner.substr(of_process.size()))) {
      return bracketed(std::string(of_process) + PidText(inner.substr(of_process.size())));
    }
  }
  for (const string_view named : {"anon:", "anon_shmem:"}) {
    if (inner.starts_with(named)) return bracketed(NameOf(std::string(named) + "n_", inner));
  }
  if (level_ >= Level::kSymbols && !IsPublic(name)) return bracketed(NameOf("m_", inner));
  return bracketed(WithoutIdentity(inner));
}

std::string Pseudonyms::FilePath(string_view path) {
  // What a container, or a process, sees as its root.
  constexpr string_view kProc = "/proc/", kRoot = "/root/";
  const bool hide_module = level_ >= Level::kSymbols && !IsPublic(path);
  std::vector<string_view> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    parts.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  const bool in_proc = path.starts_with(kProc);
  if (in_proc && parts.size() > 4 && IsNumber(parts[2]) && parts[3] == "root") {
    const size_t root = path.find(kRoot, kProc.size());
    return std::string(kProc) + PidText(parts[2]) + "/root" +
           FilePath(path.substr(root + kRoot.size() - 1));
  }
  const bool of_system = path[0] == '/' && parts.size() > 2 &&
                         IsOfSystem(parts[1], parts.size() > 3 ? parts[2] : string_view());
  std::string out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += '/';
    const bool is_release = i >= 2 && of_system && parts[i - 1] == "modules";
    if (i + 1 == parts.size()) {
      out += File(parts[i], of_system, hide_module);
    } else if (in_proc && IsNumber(parts[i])) {
      out += PidText(parts[i]);
    } else if (i != 0 && (parts[i - 1] == "home" || parts[i - 1] == "Users")) {
      out += parts[i].empty() ? "" : NameOf("d_", parts[i]);
    } else if (is_release) {
      out += Release(parts[i]);
    } else {
      out += Folder(parts[i], of_system, hide_module);
    }
  }
  return out;
}

std::string Pseudonyms::Folder(string_view name, bool of_system, bool hide_module) const {
  if (name.empty() || IsPublicFolder(name)) return std::string(name);
  if (of_system && !hide_module) return WithoutIdentity(name);
  return NameOf("d_", name);
}

std::string Pseudonyms::File(string_view name, bool of_system, bool hide_module) {
  if (name.empty()) return "";
  if (std::string jit = JitFile(name); !jit.empty()) return jit;
  for (const string_view kernel : {"vmlinux-", "vmlinuz-"}) {
    if (hide_module || !name.starts_with(kernel)) continue;
    return std::string(kernel) + Release(name.substr(kernel.size()));
  }
  if (hide_module) return NameOf("m_", name) + std::string(ExtensionOfCode(name));
  if (of_system || IsNameOfCode(name)) return WithoutIdentity(name);
  return NameOf("n_", name);
}

std::string Pseudonyms::JitFile(string_view name) {
  struct Form {
    string_view before, behind;
  };
  constexpr auto kForms =
      std::to_array<Form>({{"perf-", ".map"}, {"jit-", ".dump"}, {"jitted-", ".so"}});
  for (const auto& [before, behind] : kForms) {
    if (!name.starts_with(before) || !name.ends_with(behind)) continue;
    if (name.size() <= before.size() + behind.size()) continue;
    const string_view middle =
        name.substr(before.size(), name.size() - before.size() - behind.size());
    const size_t dash = middle.find('-');
    const bool has_index = dash != string_view::npos;
    if (!IsNumber(middle.substr(0, dash))) continue;
    if (has_index && (behind != ".so" || !IsNumber(middle.substr(dash + 1)))) continue;
    return std::string(before) + PidText(middle.substr(0, dash)) +
           (has_index ? std::string(middle.substr(dash)) : "") + std::string(behind);
  }
  return "";
}

}  // namespace stackreel::anonymize
