#include "symbolize/symbolizer.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "dwarf/source_index.h"
#include "elf/image.h"
#include "session/jit_dump.h"
#include "symbolize/frame_cache.h"
#include "symbolize/symbol_table.h"

namespace stackreel::symbolize {
namespace {

// What a name of the symbol table was interned as; filled in on first use.
struct InternedName {
  StringInterner::Id function = 0;
  StringInterner::Id mangled = 0;
};

struct ModuleState {
  ModuleFiles files;
  SymbolTable table;
  std::unordered_map<const char*, InternedName> names;  // by where the table has the text
  // What to add to a looked-up address to get one of the table's.
  uint64_t shift = 0;
  uint64_t source_shift = 0;  // the same for `source`
  std::string why;            // empty: has symbols
  bool table_ready = false;
  bool source_tried = false;
  std::unique_ptr<dwarf::SourceIndex> source;
  std::unique_ptr<const session::JitDump> jit;  // of a kJitDump: points into files.main
  // By where the index keeps the text: many addresses share few names and files, and mangled names
  // are long.
  std::unordered_map<const char*, InternedName> source_names;
  std::unordered_map<const char*, StringInterner::Id> source_files;
  Counters source_reported;  // what of source->counters() was passed on
};

std::optional<elf::Image> ParseImage(const FileImagePtr& file, Counters& counters,
                                     std::string& why) {
  if (file == nullptr) return std::nullopt;
  Result<elf::Image> image = elf::Image::Parse(file->bytes());
  if (image) return std::move(*image);
  counters.Add("symbolize.bad_file");
  why = std::move(image.error()).At(std::string(file->name())).ToString();
  return std::nullopt;
}

}  // namespace

std::string KallsymsModule(const session::Module& module) {
  if (module.key.kind != session::ModuleKind::kKernelModule) return "";
  std::string_view name = module.path();
  if (name.starts_with("bpf_prog_") || name.starts_with("bpf_trampoline_")) return "bpf";
  if (name.starts_with('[')) {
    name = name.substr(1, name.find(']') - 1);
  } else {
    name = name.substr(name.rfind('/') + 1);
    name = name.substr(0, name.find(".ko"));
  }
  std::string out(name);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

namespace {
// The table may not have it: of several symbols at its address it keeps one.
std::optional<uint64_t> AddressInElf(const elf::Image& image, std::string_view name) {
  elf::SymbolCursor symbols = image.Symtab();
  for (elf::Symbol symbol; symbols.Next(&symbol);) {
    if (!name.empty() && symbol.name == name) return symbol.value;
  }
  return std::nullopt;
}

// What to add to an address that is looked up to get the file's own: nothing but for kernels, which
// are looked up by actual address.
uint64_t ShiftInElf(const elf::Image& image, const session::Module& module) {
  if (!module.is_kernel()) return 0;
  if (image.type() == ET_REL) return 0 - module.kernel_start.value;  // its code is laid out from 0
  const std::optional<uint64_t> reference = AddressInElf(image, module.reference_symbol);
  if (!reference || module.reference_address == 0) return 0;
  return *reference - module.reference_address;
}
}  // namespace

struct Symbolizer::State {
  State(ModuleFileProvider& p, const SymbolizeOptions& o, Counters& c)
      : provider(p), options(o), counters(c) {}

  ModuleState& ModuleOf(session::ModuleId id, const session::Module& module);
  void LoadTable(const session::Module& module, ModuleState& state);
  void LoadJitDump(ModuleState& state, std::string& damage);
  void LoadSource(const session::Module& module, ModuleState& state);
  void PassOnCounters(ModuleState& state) const;
  InternedName NameOf(ModuleState& state, const SymbolRange& symbol);
  InternedName NameOfSource(ModuleState& state, const dwarf::SourceFrame& frame);
  StringInterner::Id FileOfSource(ModuleState& state, std::string_view file);
  std::span<const SymbolizedFrame> Look(session::ModuleId id, const session::Module& module,
                                        Svma lookup);
  void AddSource(const session::Module& module, ModuleState& state, Svma lookup);
  void AddJitLine(ModuleState& state, Svma lookup);

  ModuleFileProvider& provider;
  const SymbolizeOptions options;
  Counters& counters;
  StringInterner strings;
  std::vector<std::unique_ptr<ModuleState>> modules;  // by id
  FrameCache<SymbolizedFrame> cache;
  std::vector<SymbolizedFrame> frames;  // those of the lookup under way
};

ModuleState& Symbolizer::State::ModuleOf(session::ModuleId id, const session::Module& module) {
  if (id >= modules.size()) modules.resize(id + size_t{1});
  if (modules[id] == nullptr) {
    modules[id] = std::make_unique<ModuleState>();
    if (!module.ksymbol) modules[id]->files = provider.FilesOf(module);
    modules[id]->why = modules[id]->files.why;
  }
  return *modules[id];
}

// Kernels and their modules are looked up by actual address, as kallsyms has them. The kernel may
// have been loaded elsewhere when kallsyms was taken than when the recording was: the reference
// symbol, whose address the recording has, tells by how much.
void Symbolizer::State::LoadTable(const session::Module& module, ModuleState& state) {
  state.table_ready = true;
  const ModuleFiles& files = state.files;
  std::string damage;
  std::optional<uint64_t> reference;
  if (files.perf_map != nullptr) {
    uint64_t bad_lines = 0;
    state.table = SymbolTable::FromPerfMap(AsText(files.perf_map->bytes()), &bad_lines);
    counters.Add("symbolize.bad_perf_map_line", bad_lines);
  } else if (files.kallsyms != nullptr) {
    const std::string_view text = AsText(files.kallsyms->bytes());
    reference = AddressInKallsyms(text, module.reference_symbol);
    state.table = SymbolTable::FromKallsyms(text, KallsymsModule(module));
  } else if (module.key.kind == session::ModuleKind::kJitDump) {
    LoadJitDump(state, damage);
  } else if (module.key.path == session::kAgentMapping) {
    uint64_t none_bad = 0;
    state.table = SymbolTable::FromPerfMap("0 7fffffffffffffff [stackreel agent]\n", &none_bad);
  }
  if (state.table.empty() && module.key.kind != session::ModuleKind::kJitDump) {
    const std::optional<elf::Image> main = ParseImage(files.main, counters, damage);
    const std::optional<elf::Image> debug = ParseImage(files.debug, counters, damage);
    state.table = SymbolTable::FromElf(main ? &*main : nullptr, debug ? &*debug : nullptr);
    if (main) state.shift = ShiftInElf(*main, module);
  }
  if (reference && module.reference_address != 0) {
    state.shift = *reference - module.reference_address;
  }
  if (!state.table.empty()) {
    state.why.clear();
  } else if (!damage.empty()) {
    state.why = damage;
  } else if (state.why.empty() && files.main != nullptr) {
    state.why = fmt::format("{}: has no symbols", files.main->name());
  }
}

void Symbolizer::State::LoadJitDump(ModuleState& state, std::string& damage) {
  state.source_tried = true;  // it is no ELF file
  if (state.files.main == nullptr) return;
  Result<session::JitDump> dump = session::JitDump::Parse(state.files.main->bytes());
  if (!dump) {
    counters.Add("symbolize.bad_file");
    damage = std::move(dump.error()).At(std::string(state.files.main->name())).ToString();
    return;
  }
  state.jit = std::make_unique<const session::JitDump>(std::move(*dump));
  state.table = SymbolTable::FromJitDump(*state.jit);
}

void Symbolizer::State::LoadSource(const session::Module& module, ModuleState& state) {
  state.source_tried = true;
  for (const FileImagePtr& file : {state.files.debug, state.files.main}) {
    if (file == nullptr) continue;
    auto index = dwarf::SourceIndex::Open(file, {state.files.alt_file, state.files.dwo_file},
                                          {.lines = options.lines});
    if (index) {
      state.source = std::move(*index);
      if (const auto image = elf::Image::Parse(file->bytes())) {
        state.source_shift = ShiftInElf(*image, module);
      }
      return;
    }
    if (index.error().kind != ErrorKind::kNotFound) counters.Add("symbolize.bad_debug_file");
  }
}

void Symbolizer::State::PassOnCounters(ModuleState& state) const {
  for (const auto& [name, n] : state.source->counters().values()) {
    const uint64_t reported = state.source_reported.Get(name);
    counters.Add(name, n - reported);
    state.source_reported.Add(name, n - reported);
  }
}

InternedName Symbolizer::State::NameOf(ModuleState& state, const SymbolRange& symbol) {
  if (symbol.name.empty()) return {};
  const auto [it, added] = state.names.try_emplace(symbol.name.data());
  InternedName& name = it->second;
  if (added) {
    name.mangled = strings.Intern(symbol.name);
    name.function = options.demangle ? strings.Intern(Demangle(symbol.name)) : name.mangled;
  }
  return name;
}

InternedName Symbolizer::State::NameOfSource(ModuleState& state, const dwarf::SourceFrame& frame) {
  if (frame.function.empty()) return {};
  const auto [it, added] = state.source_names.try_emplace(frame.function.data());
  InternedName& name = it->second;
  if (!added) return name;
  name.mangled = strings.Intern(frame.function);
  name.function = options.demangle && frame.function_is_linkage_name
                      ? strings.Intern(Demangle(frame.function))
                      : name.mangled;
  return name;
}

StringInterner::Id Symbolizer::State::FileOfSource(ModuleState& state, std::string_view file) {
  if (file.empty()) return 0;
  const auto [it, added] = state.source_files.try_emplace(file.data());
  if (added) it->second = strings.Intern(file);
  return it->second;
}

// Adds to `frames`, which has the symbol's frame only, what DWARF knows. The symbol's name stays
// that of the outermost frame: it is the same in every recording, stripped or not.
void Symbolizer::State::AddSource(const session::Module& module, ModuleState& state, Svma lookup) {
  if (!state.source_tried) LoadSource(module, state);
  if (state.source == nullptr) return;
  const std::vector<dwarf::SourceFrame> sources = state.source->Find(lookup + state.source_shift);
  PassOnCounters(state);
  if (sources.empty()) return;
  SymbolizedFrame outer = frames.front();
  frames.clear();
  if (options.inlines) {
    for (size_t i = 0; i + 1 < sources.size(); ++i) {
      const InternedName name = NameOfSource(state, sources[i]);
      frames.push_back({.function = name.function,
                        .mangled = name.mangled,
                        .offset = outer.offset,
                        .inlined = true});
    }
  }
  if (outer.function == 0) {
    const InternedName name = NameOfSource(state, sources.back());
    outer.function = name.function;
    outer.mangled = name.mangled;
  }
  frames.push_back(outer);
  if (!options.lines) return;
  // Without inlined functions the one frame is where control is: the innermost location.
  for (size_t i = 0; i < frames.size(); ++i) {
    frames[i].file = FileOfSource(state, sources[i].file);
    frames[i].line = sources[i].line;
  }
}

void Symbolizer::State::AddJitLine(ModuleState& state, Svma lookup) {
  const session::JitCode* code = state.jit->FindBySvma(lookup);
  if (code == nullptr) return;
  const std::span<const session::JitLine> lines = state.jit->LinesOf(*code);
  const auto above = std::upper_bound(
      lines.begin(), lines.end(), lookup.value - code->offset,
      [](uint64_t offset, const session::JitLine& line) { return offset < line.offset; });
  if (above == lines.begin()) return;
  frames.front().file = strings.Intern((above - 1)->file);
  frames.front().line = (above - 1)->line;
}

std::span<const SymbolizedFrame> Symbolizer::State::Look(session::ModuleId id,
                                                         const session::Module& module,
                                                         Svma lookup) {
  ModuleState& state = ModuleOf(id, module);
  if (!state.table_ready && !module.ksymbol) LoadTable(module, state);
  const Svma in_table = lookup + state.shift;
  frames.assign(1, SymbolizedFrame{});
  if (module.ksymbol) {
    frames[0].function = frames[0].mangled = strings.Intern(module.path());
    frames[0].offset = lookup.value;
  } else if (const std::optional<SymbolRange> symbol = state.table.Find(in_table)) {
    const InternedName name = NameOf(state, *symbol);
    frames[0].function = name.function;
    frames[0].mangled = name.mangled;
    frames[0].offset = in_table - symbol->start;
  }
  if (state.jit != nullptr && options.lines) AddJitLine(state, in_table);
  if (options.inlines || options.lines) AddSource(module, state, lookup);
  if (frames.back().function == 0) counters.Add("symbolize.unresolved_address");
  return cache.Insert(id, lookup.value, frames);
}

Symbolizer::Symbolizer(ModuleFileProvider& provider, const SymbolizeOptions& options,
                       Counters& counters)
    : state_(std::make_unique<State>(provider, options, counters)) {}
Symbolizer::~Symbolizer() = default;

std::span<const SymbolizedFrame> Symbolizer::Find(session::ModuleId id,
                                                  const session::Module& module, Svma lookup) {
  const std::span<const SymbolizedFrame> found = state_->cache.Find(id, lookup.value);
  return found.empty() ? state_->Look(id, module, lookup) : found;
}

std::span<const SymbolizedFrame> Symbolizer::FindKnown(session::ModuleId id, Svma lookup) const {
  return state_->cache.Find(id, lookup.value);
}

std::string_view Symbolizer::Text(StringInterner::Id id) const { return state_->strings.Text(id); }

const ModuleFiles& Symbolizer::FilesOf(session::ModuleId id, const session::Module& module) {
  return state_->ModuleOf(id, module).files;
}

std::string_view Symbolizer::WhyUnresolved(session::ModuleId id) const {
  if (id >= state_->modules.size() || state_->modules[id] == nullptr) return "";
  return state_->modules[id]->why;
}

StringInterner& Symbolizer::strings() { return state_->strings; }

}  // namespace stackreel::symbolize
