#include "symbolize/symbolizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "elf/image.h"
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
  std::vector<InternedName> names;  // by index in table.symbols()
  // What to add to a looked-up address to get one of the table's.
  uint64_t shift = 0;
  std::string why;  // empty: has symbols
  bool table_ready = false;
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

struct Symbolizer::State {
  State(ModuleFileProvider& p, const SymbolizeOptions& o, Counters& c)
      : provider(p), options(o), counters(c) {}

  ModuleState& ModuleOf(session::ModuleId id, const session::Module& module);
  void LoadTable(const session::Module& module, ModuleState& state);
  InternedName NameOf(ModuleState& state, const SymbolRange& symbol);
  std::span<const SymbolizedFrame> Look(session::ModuleId id, const session::Module& module,
                                        Svma lookup);

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
    modules[id]->files = provider.FilesOf(module);
    modules[id]->why = modules[id]->files.why;
  }
  return *modules[id];
}

// Kernels and their modules are looked up by actual address, as kallsyms has them. The kernel may
// have been loaded elsewhere when kallsyms was taken than when the recording was: the reference
// symbol, whose address the recording has, tells by how much.
void Symbolizer::State::LoadTable(const session::Module& module, ModuleState& state) {
  state.table_ready = true;
  ModuleFiles& files = state.files;
  std::string damage;
  if (!files.text.empty() && files.text_is_perf_map) {
    uint64_t bad_lines = 0;
    state.table = SymbolTable::FromPerfMap(files.text, &bad_lines);
    counters.Add("symbolize.bad_perf_map_line", bad_lines);
  } else if (!files.text.empty()) {
    state.table = SymbolTable::FromKallsyms(files.text, KallsymsModule(module));
  } else {
    const std::optional<elf::Image> main = ParseImage(files.main, counters, damage);
    const std::optional<elf::Image> debug = ParseImage(files.debug, counters, damage);
    state.table = SymbolTable::FromElf(main ? &*main : nullptr, debug ? &*debug : nullptr);
  }
  files.text = std::string();  // the table has copied what it needs; kallsyms is 10 MB or more
  state.names.resize(state.table.symbols().size());
  if (!module.reference_symbol.empty() && module.reference_address != 0) {
    const auto& symbols = state.table.symbols();
    auto reference = std::find_if(symbols.begin(), symbols.end(), [&](const SymbolRange& s) {
      return s.name == module.reference_symbol;
    });
    if (reference != symbols.end()) state.shift = reference->start.value - module.reference_address;
  }
  if (!state.table.empty()) {
    state.why.clear();
  } else if (!damage.empty()) {
    state.why = damage;
  } else if (state.why.empty() && files.main != nullptr) {
    state.why = fmt::format("{}: has no symbols", files.main->name());
  }
}

InternedName Symbolizer::State::NameOf(ModuleState& state, const SymbolRange& symbol) {
  InternedName& name = state.names[static_cast<size_t>(&symbol - state.table.symbols().data())];
  if (name.mangled == 0 && !symbol.name.empty()) {
    name.mangled = strings.Intern(symbol.name);
    name.function = options.demangle ? strings.Intern(Demangle(symbol.name)) : name.mangled;
  }
  return name;
}

std::span<const SymbolizedFrame> Symbolizer::State::Look(session::ModuleId id,
                                                         const session::Module& module,
                                                         Svma lookup) {
  ModuleState& state = ModuleOf(id, module);
  if (!state.table_ready) LoadTable(module, state);
  const Svma in_table = lookup + state.shift;
  frames.assign(1, SymbolizedFrame{});
  if (const SymbolRange* symbol = state.table.Find(in_table); symbol != nullptr) {
    const InternedName name = NameOf(state, *symbol);
    frames[0].function = name.function;
    frames[0].mangled = name.mangled;
    frames[0].offset = in_table - symbol->start;
  }
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
