#include "tracedata/uftrace_symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stackreel::tracedata {

namespace {
constexpr size_t kMaxText = size_t{512} << 20;  // of one file
constexpr uint32_t kNoModule = UINT32_MAX;
}  // namespace

std::string UftraceSymbols::ReadFile(const std::string& name) {
  std::string text;
  const Result<std::unique_ptr<FileSource>> file = folder_.Open(name);
  if (!file) return text;
  std::vector<uint8_t> piece(64 << 10);
  while (text.size() < kMaxText) {
    const Result<size_t> n = (*file)->Read(piece);
    if (!n || *n == 0) break;
    text += AsText(ByteView(piece).first(*n));
  }
  return text;
}

uint32_t UftraceSymbols::AddModule(const std::string& path, const BuildId& build_id) {
  const auto [known, fresh] =
      module_rows_.try_emplace(path, static_cast<uint32_t>(modules_.size()));
  if (!fresh) return known->second;
  const std::string base = path.substr(path.rfind('/') + 1);
  // Of files with one name, each has its build-id's beginning in the name.
  std::string text, debug;
  std::vector<std::string> names = {base};
  const std::string hex = build_id.ToHex();
  if (hex.size() >= 4) names.insert(names.begin(), base + "-" + hex.substr(0, 4));
  for (const std::string& name : names) {
    text = ReadFile(name + ".sym");
    if (text.empty()) continue;
    debug = ReadFile(name + ".dbg");
    break;
  }
  if (text.empty()) counters_.Add("uftrace.no_symbols");
  modules_.push_back({.symbols = ParseUftraceSymbols(text, counters_),
                      .debug = ParseUftraceDebug(debug),
                      .enumerations = {},
                      .rows = {}});
  Module& module = modules_.back();
  for (const std::vector<TraceEnumeration>& enumerations :
       {module.debug.enumerations, info_.enumerations}) {
    for (TraceEnumeration enumeration : enumerations) {
      enumeration.id = static_cast<uint32_t>(tables_.enumerations.size()) + 1;
      if (!module.enumerations.try_emplace(enumeration.name, enumeration.id).second) continue;
      tables_.enumerations.push_back(std::move(enumeration));
    }
  }
  tables_.modules.push_back({.id = known->second, .path = path, .build_id = build_id});
  return known->second;
}

size_t UftraceSymbols::AddSession(const std::string& sid, uint32_t pid) {
  const auto [known, fresh] = session_numbers_.try_emplace(sid, sessions_.size());
  if (!fresh) return known->second;
  Session& session = sessions_.emplace_back();
  const std::string text = ReadFile("sid-" + sid + ".map");
  if (text.empty()) counters_.Add("uftrace.no_map");
  for (const UftraceMapping& mapping : ParseUftraceMap(text, counters_)) {
    const uint32_t module = AddModule(mapping.path, mapping.build_id);
    session.mappings.push_back({mapping.start, mapping.end, module});
    if (!info_.Has(UftraceFeature::kRelativeSymbols)) continue;
    tables_.loads.push_back({.pid = pid,
                             .module = module,
                             .ticks = 0,
                             .start = Avma(mapping.start),
                             .end = Avma(mapping.end),
                             .bias = mapping.start});
  }
  return known->second;
}

void UftraceSymbols::AddLibrary(const std::string& sid, uint64_t base, const std::string& path) {
  Session& session = sessions_[AddSession(sid)];
  const uint32_t module = AddModule(path, BuildId());
  // Its end is not told: as far as its symbols go.
  const std::vector<UftraceSymbol>& symbols = modules_[module].symbols;
  const uint64_t size = symbols.empty() ? 0 : symbols.back().address + 4096;
  if (base > std::numeric_limits<uint64_t>::max() - size) return;
  session.mappings.push_back({base, base + size, module});
  std::ranges::stable_sort(session.mappings, {}, &Mapping::start);
}

// Of arguments and of return values, those that the user gave count, then debug information, then
// what uftrace knows by itself.
const UftraceSpecs* UftraceSymbols::SpecsOf(const Module& module, const std::string& name,
                                            uint64_t address) {
  UftraceSpecs specs;
  const auto add = [&](const UftraceSpecs& more) {
    if (specs.arguments.empty()) specs.arguments = more.arguments;
    if (specs.returns.empty()) specs.returns = more.returns;
  };
  if (const auto given = info_.specs.find(name); given != info_.specs.end()) add(given->second);
  if (const auto found = module.debug.specs.find(address); found != module.debug.specs.end()) {
    add(found->second);
  }
  const auto built_in = info_.built_in_specs.find(name);
  if (built_in != info_.built_in_specs.end()) add(built_in->second);
  if (specs.arguments.empty() && specs.returns.empty()) return nullptr;
  return &specs_.emplace_back(std::move(specs));
}

UftraceSymbols::Function UftraceSymbols::MakeFunction(uint32_t module_row, size_t symbol_index,
                                                      uint64_t address) {
  TraceFunction function;
  function.id = static_cast<uint32_t>(tables_.functions.size());
  function.module = module_row;
  Function made{.row = function.id};
  if (symbol_index == SIZE_MAX) {
    counters_.Add("uftrace.unknown_symbol");
    function.name = fmt::format("<{:x}>", address);
    function.svma = Svma(address);
  } else {
    Module& module = modules_[module_row];
    const UftraceSymbol& symbol = module.symbols[symbol_index];
    made.specs = SpecsOf(module, symbol.name, symbol.address);
    if (const auto known = module.rows.find(symbol_index); known != module.rows.end()) {
      made.row = known->second;
      return made;
    }
    module.rows[symbol_index] = function.id;
    function.name = symbol.name;
    function.svma = Svma(symbol.address);
    function.size = symbol.size;
    const bool has_next = symbol.size == 0 && symbol_index + 1 < module.symbols.size();
    if (has_next) function.size = module.symbols[symbol_index + 1].address - symbol.address;
  }
  if (made.specs != nullptr) {
    const auto add = [&](const std::vector<UftraceSpec>& specs, std::vector<ValueFormat>& formats) {
      for (const UftraceSpec& spec : specs) {
        ValueFormat& format = formats.emplace_back(spec.format);
        if (spec.enumeration.empty() || module_row == kNoModule) continue;
        const auto& ids = modules_[module_row].enumerations;
        if (const auto id = ids.find(spec.enumeration); id != ids.end()) {
          format.enumeration = id->second;
        }
      }
    };
    add(made.specs->arguments, function.arguments);
    add(made.specs->returns, function.returns);
  }
  tables_.functions.push_back(std::move(function));
  return made;
}

UftraceSymbols::Function UftraceSymbols::Find(const Session& session, uint64_t address) {
  auto mapping = std::ranges::upper_bound(session.mappings, address, {}, &Mapping::start);
  if (mapping == session.mappings.begin()) return MakeFunction(kNoModule, SIZE_MAX, address);
  --mapping;
  if (address >= mapping->end) return MakeFunction(kNoModule, SIZE_MAX, address);
  const uint64_t wanted =
      info_.Has(UftraceFeature::kRelativeSymbols) ? address - mapping->start : address;
  const std::vector<UftraceSymbol>& symbols = modules_[mapping->module].symbols;
  const auto after = std::ranges::upper_bound(symbols, wanted, {}, &UftraceSymbol::address);
  size_t index = static_cast<size_t>(after - symbols.begin());
  if (index == 0) return MakeFunction(mapping->module, SIZE_MAX, address);
  --index;
  // Of several names of one place, the first.
  while (index > 0 && symbols[index - 1].address == symbols[index].address &&
         !symbols[index - 1].is_end) {
    --index;
  }
  const UftraceSymbol& symbol = symbols[index];
  const bool outside = symbol.size != 0 && wanted - symbol.address >= symbol.size;
  return MakeFunction(mapping->module, symbol.is_end || outside ? SIZE_MAX : index, address);
}

const UftraceSymbols::Function& UftraceSymbols::At(size_t session, uint64_t address) {
  Session& place = sessions_[session];
  const auto known = place.functions.find(address);
  if (known != place.functions.end()) return known->second;
  return place.functions.emplace(address, Find(place, address)).first->second;
}

}  // namespace stackreel::tracedata
