#include <fmt/format.h>
#include <sys/utsname.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/byte_reader.h"
#include "os/file.h"
#include "record/synthesize.h"

namespace stackreel::record {

namespace {

// Calls visit(address, type, name) for each line "ffffffff81000000 T _text" of kallsyms.
template <typename Visit>
void ForEachKernelSymbol(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    uint64_t address = 0;
    const auto number = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    line.remove_prefix(static_cast<size_t>(number.ptr - line.data()));
    if (number.ec != std::errc{} || line.size() < 4) continue;
    visit(address, line[1], line.substr(3));
  }
}

// "kernel/drivers/net/foo-bar.ko.xz" → "foo_bar", as /proc/modules spells it.
std::string ModuleNameOf(std::string_view path) {
  std::string name(path.substr(path.rfind('/') + 1));
  if (const size_t dot = name.find(".ko"); dot != std::string::npos) name.resize(dot);
  std::ranges::replace(name, '-', '_');
  return name;
}

// Module name → path, by modules.dep: "kernel/…/foo.ko: kernel/…/bar.ko".
std::map<std::string, std::string> ReadModulePaths(const std::string& folder) {
  std::map<std::string, std::string> paths;
  const auto text = os::ReadTextFile(folder + "/modules.dep");
  if (!text) return paths;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::string_view path = line.substr(0, line.find(':'));
    if (path.empty()) continue;
    paths[ModuleNameOf(path)] =
        path.starts_with('/') ? std::string(path) : fmt::format("{}/{}", folder, path);
  }
  return paths;
}

// "foo 16384 1 - Live 0xffffffffc0000000 (OE)"
std::optional<KernelModule> ParseModuleLine(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t end = std::min(line.find(' '), line.size());
    if (end != 0) words.push_back(line.substr(0, end));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  if (words.size() < 6 || !words[5].starts_with("0x")) return std::nullopt;
  KernelModule module;
  module.name = words[0];
  std::from_chars(words[1].data(), words[1].data() + words[1].size(), module.size, 10);
  std::from_chars(words[5].data() + 2, words[5].data() + words[5].size(), module.address, 16);
  if (module.address == 0 || module.size == 0) return std::nullopt;  // kptr_restrict
  return module;
}

std::optional<BuildId> ReadNotesBuildId(const std::string& path) {
  const auto notes = os::ReadTextFile(path, size_t{1} << 20);
  return notes ? BuildIdOfNotes(AsBytes(*notes)) : std::nullopt;
}

std::vector<KernelModule> ReadModules(const KernelFolders& folders, const std::string& release) {
  std::vector<KernelModule> modules;
  const auto text = os::ReadTextFile(folders.proc + "/modules");
  if (!text) return modules;  // a kernel without modules
  const auto paths = ReadModulePaths(folders.modules + "/" + release);
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    auto module = ParseModuleLine(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!module) continue;
    const auto path = paths.find(module->name);
    module->path = path != paths.end() ? path->second : "[" + module->name + "]";
    module->build_id = ReadNotesBuildId(
        fmt::format("{}/module/{}/notes/.note.gnu.build-id", folders.sys, module->name));
    modules.push_back(std::move(*module));
  }
  std::ranges::sort(modules, {}, &KernelModule::address);
  return modules;
}

}  // namespace

std::optional<BuildId> BuildIdOfNotes(ByteView notes) {
  constexpr uint32_t kNtGnuBuildId = 3;
  ByteReader in(notes, kNativeEndian);
  while (in.remaining() >= 12) {
    const uint32_t name_size = in.U32();
    const uint32_t desc_size = in.U32();
    const uint32_t type = in.U32();
    const ByteView name = in.Bytes(name_size);
    in.Skip((4 - name_size % 4) % 4);
    const ByteView desc = in.Bytes(desc_size);
    if (!in.ok()) break;
    if (type == kNtGnuBuildId && TextUpToNul(name) == "GNU" && !desc.empty()) return BuildId(desc);
    in.Skip((4 - desc_size % 4) % 4);
  }
  return std::nullopt;
}

Result<KernelImage> ReadKernelImage(const KernelFolders& folders) {
  KernelImage kernel;
  TRY_ASSIGN(const std::string kallsyms, os::ReadTextFile(folders.proc + "/kallsyms"));
  uint64_t text = 0, stext = 0, etext = 0;
  ForEachKernelSymbol(kallsyms, [&](uint64_t address, char, std::string_view name) {
    if (name == "_text") text = address;
    if (name == "_stext") stext = address;
    if (name == "_etext") etext = address;
    constexpr std::string_view kBpf = "\t[bpf]";
    if (address != 0 && name.ends_with(kBpf)) {
      name.remove_suffix(kBpf.size());
      kernel.bpf_symbols.push_back({address, std::string(name)});
    }
  });
  std::ranges::stable_sort(kernel.bpf_symbols, {}, &KernelSymbol::address);
  kernel.text_start = text != 0 ? text : stext;
  kernel.text_end = std::max(etext, kernel.text_start);
  kernel.reference_symbol = text != 0 ? "_text" : "_stext";
  kernel.build_id = ReadNotesBuildId(folders.sys + "/kernel/notes");
  struct utsname names = {};
  uname(&names);
  kernel.modules = ReadModules(folders, names.release);
  return kernel;
}

}  // namespace stackreel::record
