#include "support/module_code.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <utility>

#include "dwarf/cfi.h"
#include "os/file.h"
#include "unwind/unwind.h"

namespace stackreel::testing {
namespace {

constexpr uint64_t kExecutableSection = 4;  // SHF_EXECINSTR
constexpr uint8_t kFunctionSymbol = 2;      // STT_FUNC

struct Extent {
  Svma end;
  std::string name;
};

bool IsColdPart(std::string_view name) {
  const size_t at = name.find(".cold");
  return at != std::string_view::npos && (at + 5 == name.size() || name[at + 5] == '.');
}

// From start to end, of everything that is said to be a function.
std::map<Svma, Extent> ReadExtents(const elf::Image& image, ModuleCode& module) {
  std::map<Svma, Extent> extents;
  const auto unwind = unwind::UnwindModule::Make(&image, nullptr);
  for (const dwarf::Fde& fde : unwind->frames().AllFdes()) {
    extents.try_emplace(fde.start, Extent{fde.end, ""});
  }
  for (const auto& symbols : {image.ReadSymtab(), image.ReadDynsym()}) {
    for (const elf::Symbol& symbol : symbols) {
      if (symbol.type != kFunctionSymbol || symbol.section == 0) continue;
      const Svma start(symbol.value);
      if (symbol.name == "mcount" || symbol.name == "_mcount" || symbol.name == "__fentry__") {
        module.profiling_functions.push_back(start);
      }
      if (symbol.size == 0 && !extents.contains(start)) continue;
      Extent& extent = extents.try_emplace(start, Extent{start + symbol.size, ""}).first->second;
      if (extent.name.empty()) extent.name = symbol.name;
    }
  }
  return extents;
}

void ReadRanges(const elf::Image& image, ModuleCode& module) {
  for (const elf::Section& section : image.sections()) {
    if ((section.flags & kExecutableSection) == 0 || section.name.starts_with(".plt")) continue;
    const ByteView bytes = image.RawBytes(section);
    if (bytes.empty()) continue;
    module.ranges.push_back({Svma(section.addr), bytes});
    module.code_size += bytes.size();
  }
  std::ranges::sort(module.ranges, {}, &x86::CodeRange::start);
}

void CutFunctions(const std::map<Svma, Extent>& extents, ModuleCode& module) {
  for (const x86::CodeRange& range : module.ranges) {
    const Svma range_end = range.start + range.bytes.size();
    Svma last_end = range.start;
    for (auto at = extents.lower_bound(range.start); at != extents.end() && at->first < range_end;
         ++at) {
      const Svma start = at->first;
      const auto next = std::next(at);
      const Svma next_start = next == extents.end() ? range_end : std::min(range_end, next->first);
      const Svma end = std::min(at->second.end, next_start);
      const auto bytes = [&](Svma from, Svma to) {
        return from < to ? range.bytes.subspan(from - range.start, to - from) : ByteView();
      };
      if (end > start && !IsColdPart(at->second.name)) {
        module.functions.push_back({start, bytes(start, end), bytes(last_end, start),
                                    bytes(end, next_start), at->second.name});
      }
      last_end = std::max(last_end, end);
    }
  }
}

void ReadRelocations(const elf::Image& image, ModuleCode& module) {
  const auto read = [&](const char* name) {
    const elf::Section* const section = image.FindSection(name);
    return section == nullptr ? ByteView() : image.RawBytes(*section);
  };
  module.relocations = x86::ReadRela(read(".rela.dyn"));
  const auto packed = x86::ReadRelr(read(".relr.dyn"), module.Loaded());
  module.relocations.insert(module.relocations.end(), packed.begin(), packed.end());
  std::ranges::sort(module.relocations, {}, &x86::RelativeRelocation::place);
}

// Calls read for each section of that name: the linker may have left several.
template <typename Read>
void ForEachSection(const ModuleCode& module, std::string_view name, const Read& read) {
  for (const elf::Section& section : module.image->sections()) {
    if (section.name != name) continue;
    read(x86::SiteSection{Svma(section.addr), module.image->RawBytes(section), module.relocations});
  }
}

void ReadSiteTables(ModuleCode& module) {
  for (const std::string_view name : {"__patchable_function_entries", "__mcount_loc"}) {
    ForEachSection(module, name, [&](const x86::SiteSection& section) {
      const auto addresses = x86::ReadAddressTable(section);
      module.patchable_entries.insert(module.patchable_entries.end(), addresses.begin(),
                                      addresses.end());
    });
  }
  std::ranges::sort(module.patchable_entries);
  ForEachSection(module, "xray_instr_map", [&](const x86::SiteSection& section) {
    const auto table = x86::ReadSledTable(section);
    module.sleds.sleds.insert(module.sleds.sleds.end(), table.sleds.begin(), table.sleds.end());
    module.sleds.unknown += table.unknown;
  });
  std::ranges::sort(module.sleds.sleds, {}, &x86::Sled::address);
}

}  // namespace

x86::FunctionSurroundings ModuleCode::Around(const ModuleFunction& function) const {
  x86::FunctionSurroundings around;
  around.before = function.before;
  around.after = function.after;
  around.targets = &targets;
  around.profiling_functions = profiling_functions;
  around.patchable_entries = patchable_entries;
  around.sleds = sleds.sleds;
  return around;
}

x86::LoadedBytes ModuleCode::Loaded() const {
  return [this](Svma svma) { return image->BytesAt(svma); };
}

Result<std::unique_ptr<ModuleCode>> ReadModuleCode(const std::string& path, Executor& executor) {
  auto module = std::make_unique<ModuleCode>();
  TRY_ASSIGN(module->file, os::MapFile(path));
  TRY_ASSIGN(elf::Image image, elf::Image::Parse(module->file->bytes()));
  module->image = std::make_unique<elf::Image>(std::move(image));
  const auto extents = ReadExtents(*module->image, *module);
  ReadRanges(*module->image, *module);
  CutFunctions(extents, *module);
  ReadRelocations(*module->image, *module);
  std::vector<Svma> starts;
  for (const auto& [start, extent] : extents) starts.push_back(start);
  const std::clock_t begin = std::clock();
  module->targets = x86::FindBranchTargets(module->ranges, starts, executor);
  module->target_seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  for (const x86::RelativeRelocation& relocation : module->relocations) {
    module->targets.Add(relocation.value);
  }
  ReadSiteTables(*module);
  return module;
}

}  // namespace stackreel::testing
