#include "tracer/module_code.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/byte_reader.h"
#include "unwind/unwind.h"
#include "x86/function_flow.h"
#include "x86/instruction.h"

namespace stackreel::tracer {
namespace {

constexpr uint16_t kMachineX86_64 = 62;          // EM_X86_64
constexpr uint64_t kExecutableSection = 4;       // SHF_EXECINSTR
constexpr uint8_t kFunctionSymbol = 2;           // STT_FUNC
constexpr uint8_t kGlobal = 1, kWeak = 2;        // STB_*
constexpr uint32_t kGlobDat = 6, kJumpSlot = 7;  // R_X86_64_*
constexpr size_t kRelaSize = 24;

bool IsProfilingFunction(std::string_view name) {
  return name == "mcount" || name == "_mcount" || name == "__fentry__";
}

bool IsColdPart(std::string_view name) {
  const size_t at = name.find(".cold");
  return at != std::string_view::npos && (at + 5 == name.size() || name[at + 5] == '.');
}

// Whether the stack is at the first byte as a call leaves it (CFA = rsp + 8) by call-frame
// information. Where it is not, a part of a function begins that is come to by jumps: what stands
// at the top of the stack is no return address.
bool BeginsAsCalled(const dwarf::FrameTable& frames, const dwarf::Fde& fde) {
  constexpr uint64_t kRsp = 7;  // DWARF's number of it
  constexpr int64_t kReturnAddress = 8;
  dwarf::RowCursor rows = frames.Rows(fde);
  const auto first = rows.Next();
  if (!first || !*first) return true;  // nothing is known
  const dwarf::Row& row = rows.row();
  if (row.cfa.is_expression) return true;
  return row.cfa.reg == kRsp && row.cfa.offset == kReturnAddress;
}

// The lower, the better a name it gives.
int RankOf(uint8_t binding) { return binding == kGlobal ? 0 : binding == kWeak ? 1 : 2; }

}  // namespace

struct ModuleCode::Reader {
  struct Extent {
    Svma end;
    bool is_part = false;  // of a function; if it has a name all the same, that counts
    std::vector<std::pair<int, std::string_view>> names;  // with their ranks
  };

  ModuleCode& module;
  std::map<Svma, Extent> extents = {};
  ForeignCodeFinder foreign = ForeignCodeFinder(*module.image_);

  // From start to end, of everything that is said to be a function.
  void ReadExtents() {
    const auto unwind = unwind::UnwindModule::Make(module.image_.get(), module.symbol_image_.get());
    for (const dwarf::Fde& fde : unwind->frames().AllFdes()) {
      extents.try_emplace(
          fde.start,
          Extent{.end = fde.end, .is_part = !BeginsAsCalled(unwind->frames(), fde), .names = {}});
    }
    if (module.symbol_image_) ReadSymbols(module.symbol_image_->ReadSymtab());
    ReadSymbols(module.image_->ReadSymtab());
    ReadSymbols(module.image_->ReadDynsym());
    module.foreign_ = foreign.Take();
    for (auto& [start, extent] : extents) {
      std::ranges::stable_sort(extent.names, {}, [](const auto& name) { return name.first; });
    }
  }
  void ReadSymbols(const std::vector<elf::Symbol>& symbols) {
    for (const elf::Symbol& symbol : symbols) {
      foreign.OnSymbol(symbol);
      if (symbol.type != kFunctionSymbol || symbol.section == 0) continue;
      const Svma start(symbol.value);
      if (IsProfilingFunction(symbol.name)) module.profiling_functions_.push_back(start);
      if (symbol.size == 0 && !extents.contains(start)) continue;
      Extent& extent =
          extents.try_emplace(start, Extent{.end = start + symbol.size, .names = {}}).first->second;
      const bool known = std::ranges::any_of(
          extent.names, [&](const auto& name) { return name.second == symbol.name; });
      if (!known && !symbol.name.empty()) {
        extent.names.emplace_back(RankOf(symbol.binding), symbol.name);
      }
    }
  }

  void ReadRanges() {
    for (const elf::Section& section : module.image_->sections()) {
      if ((section.flags & kExecutableSection) == 0 || section.name.starts_with(".plt")) continue;
      AddRange(Svma(section.addr), module.image_->RawBytes(section));
    }
    // A file whose section table was cut off.
    if (module.ranges_.empty()) {
      for (const elf::Segment& segment : module.image_->segments()) {
        if (segment.type != 1 /* PT_LOAD */ || !segment.executable()) continue;
        const ByteView bytes = module.image_->BytesAt(Svma(segment.vaddr));
        AddRange(Svma(segment.vaddr),
                 bytes.first(std::min<uint64_t>(bytes.size(), segment.file_size)));
      }
    }
    std::ranges::sort(module.ranges_, {}, &x86::CodeRange::start);
  }
  void AddRange(Svma start, ByteView bytes) {
    if (bytes.empty()) return;
    module.ranges_.push_back({start, bytes});
    module.code_size_ += bytes.size();
  }

  void CutFunctions() {
    for (const x86::CodeRange& range : module.ranges_) {
      const Svma range_end = range.start + range.bytes.size();
      Svma last_end = range.start;
      for (auto at = extents.lower_bound(range.start); at != extents.end() && at->first < range_end;
           ++at) {
        const Svma start = at->first;
        const auto next = std::next(at);
        const Svma next_start =
            next == extents.end() ? range_end : std::min(range_end, next->first);
        const Svma end = std::min(at->second.end, next_start);
        const auto bytes = [&](Svma from, Svma to) {
          return from < to ? range.bytes.subspan(from - range.start, to - from) : ByteView();
        };
        ModuleFunction function{
            start, bytes(start, end), bytes(last_end, start), bytes(end, next_start), {}, {}};
        for (const auto& [rank, name] : at->second.names) {
          if (function.name.empty()) {
            function.name = name;
          } else {
            function.others.push_back(name);
          }
        }
        const bool is_part = at->second.is_part && function.name.empty();
        if (end > start && !is_part && !IsColdPart(function.name)) {
          module.functions_.push_back(std::move(function));
        }
        last_end = std::max(last_end, end);
      }
    }
  }

  [[nodiscard]] ByteView Section(const char* name) const {
    const elf::Section* const section = module.image_->FindSection(name);
    return section == nullptr ? ByteView() : module.image_->RawBytes(*section);
  }

  void ReadRelocations() {
    module.relocations_ = x86::ReadRela(Section(".rela.dyn"));
    const auto packed = x86::ReadRelr(Section(".relr.dyn"), module.Loaded());
    module.relocations_.insert(module.relocations_.end(), packed.begin(), packed.end());
    std::ranges::sort(module.relocations_, {}, &x86::RelativeRelocation::place);
  }

  // The GOT slots of mcount and its kin, and the PLT entries that jump by way of them.
  void ReadProfilingSlots() {
    // Relocations name a symbol by its place in the table, where entry 0 is none.
    std::set<uint32_t> wanted;
    elf::SymbolCursor symbols = module.image_->Dynsym();
    elf::Symbol symbol;
    for (uint32_t i = 0; symbols.Next(&symbol); ++i) {
      if (IsProfilingFunction(symbol.name)) wanted.insert(i);
    }
    if (wanted.empty()) return;
    for (const char* const name : {".rela.dyn", ".rela.plt"}) {
      ByteReader reader(Section(name));
      while (reader.remaining() >= kRelaSize) {
        const Svma place(reader.U64());
        const uint64_t info = reader.U64();
        reader.U64();
        const auto type = static_cast<uint32_t>(info);
        if (type != kGlobDat && type != kJumpSlot) continue;
        if (wanted.contains(static_cast<uint32_t>(info >> 32))) {
          module.profiling_slots_.push_back(place);
        }
      }
    }
    for (const elf::Section& section : module.image_->sections()) {
      if (section.name.starts_with(".plt")) ReadPlt(section);
    }
  }
  void ReadPlt(const elf::Section& section) {
    constexpr size_t kSmallestEntry = 8;
    const ByteView bytes = module.image_->RawBytes(section);
    const size_t entry = section.entry_size >= kSmallestEntry ? section.entry_size : 16;
    for (size_t start = 0; start + entry <= bytes.size(); start += entry) {
      for (size_t at = start; at < start + entry;) {
        const auto instruction = x86::Decode(bytes.subspan(at));
        if (!instruction) break;
        if (instruction->flow == x86::Flow::kIndirectJump && instruction->memory.size != 0) {
          const Svma slot(x86::TargetOf(*instruction, instruction->memory, section.addr + at));
          if (std::ranges::find(module.profiling_slots_, slot) != module.profiling_slots_.end()) {
            module.profiling_functions_.push_back(Svma(section.addr + start));
          }
        }
        at += instruction->length;
      }
    }
  }

  // Calls read for each section of that name: the linker may have left several.
  template <typename Read>
  void ForEachSection(std::string_view name, const Read& read) {
    for (const elf::Section& section : module.image_->sections()) {
      if (section.name != name) continue;
      read(x86::SiteSection{Svma(section.addr), module.image_->RawBytes(section),
                            module.relocations_});
    }
  }

  void ReadSiteTables() {
    for (const std::string_view name : {"__patchable_function_entries", "__mcount_loc"}) {
      ForEachSection(name, [&](const x86::SiteSection& section) {
        const auto addresses = x86::ReadAddressTable(section);
        module.patchable_entries_.insert(module.patchable_entries_.end(), addresses.begin(),
                                         addresses.end());
      });
    }
    std::ranges::sort(module.patchable_entries_);
    ForEachSection("xray_instr_map", [&](const x86::SiteSection& section) {
      const auto table = x86::ReadSledTable(section);
      module.sleds_.sleds.insert(module.sleds_.sleds.end(), table.sleds.begin(), table.sleds.end());
      module.sleds_.unknown += table.unknown;
    });
    std::ranges::sort(module.sleds_.sleds, {}, &x86::Sled::address);
  }

  void FindTargets(Executor& executor) {
    std::vector<Svma> starts;
    starts.reserve(extents.size());
    for (const auto& [start, extent] : extents) starts.push_back(start);
    module.targets_ = x86::FindBranchTargets(module.ranges_, starts, executor);
    for (const x86::RelativeRelocation& relocation : module.relocations_) {
      module.targets_.Add(relocation.value);
    }
  }
};

Result<std::unique_ptr<ModuleCode>> ModuleCode::Read(FileImagePtr file, FileImagePtr symbols,
                                                     Executor& executor) {
  std::unique_ptr<ModuleCode> module(new ModuleCode);
  TRY_ASSIGN(elf::Image image, elf::Image::Parse(file->bytes()));
  if (image.machine() != kMachineX86_64 || image.elf_class() != elf::Class::k64) {
    return std::unexpected(
        Error(ErrorKind::kUnsupported, std::string(file->name()) + ": not code of x86-64"));
  }
  module->image_ = std::make_unique<elf::Image>(std::move(image));
  module->file_ = std::move(file);
  if (symbols) {
    TRY_ASSIGN(elf::Image symbol_image, elf::Image::Parse(symbols->bytes()));
    module->symbol_image_ = std::make_unique<elf::Image>(std::move(symbol_image));
    module->symbols_ = std::move(symbols);
  }
  Reader reader{*module};
  reader.ReadExtents();
  reader.ReadRanges();
  reader.CutFunctions();
  reader.ReadRelocations();
  reader.ReadProfilingSlots();
  reader.FindTargets(executor);
  reader.ReadSiteTables();
  return module;
}

const char* ModuleCode::WhyForeign(Svma function) const {
  const auto after = std::ranges::upper_bound(foreign_, function, {}, &ForeignCode::start);
  if (after == foreign_.begin() || function >= std::prev(after)->end) return nullptr;
  return std::prev(after)->why;
}

x86::LoadedBytes ModuleCode::Loaded() const {
  return [this](Svma svma) { return image_->BytesAt(svma); };
}

x86::FunctionFlow ModuleCode::ReadFlow(const ModuleFunction& function) const {
  return x86::ReadFunctionFlow(function.start, function.code, Loaded());
}

std::expected<x86::Site, x86::SiteError> ModuleCode::ChooseSite(const ModuleFunction& function,
                                                                x86::SiteOptions options) const {
  x86::FunctionSurroundings around;
  around.before = function.before;
  around.after = function.after;
  around.targets = &targets_;
  around.profiling_functions = profiling_functions_;
  around.profiling_slots = profiling_slots_;
  around.patchable_entries = patchable_entries_;
  around.sleds = sleds_.sleds;
  return x86::ChooseSite(function.code, ReadFlow(function), around, options);
}

}  // namespace stackreel::tracer
