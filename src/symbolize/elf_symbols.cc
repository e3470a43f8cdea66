// Which entries of an ELF file's symbol tables name code or data.
#include <elf.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/page_advice.h"
#include "elf/relocation.h"
#include "symbolize/plt.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbol_table_builder.h"

namespace stackreel::symbolize {

namespace {

// "$x", "$d.12" and the like mark code and data in ARM files (AAELF64, "Mapping symbols").
bool IsMappingSymbol(std::string_view name) {
  return name.size() >= 2 && name[0] == '$' &&
         std::string_view("adtx").find(name[1]) != std::string_view::npos &&
         (name.size() == 2 || name[2] == '.');
}

bool HoldsTextOrData(const elf::Section& section) {
  return section.name.find("text") != std::string_view::npos ||
         section.name.find("data") != std::string_view::npos;
}

bool Names(const elf::Image& image, const elf::Symbol& symbol, const char* name) {
  if (symbol.section == SHN_UNDEF || symbol.section == SHN_ABS) return false;
  if (name == nullptr || *name == '\0') return false;
  const bool arm = image.machine() == EM_ARM || image.machine() == EM_AARCH64;
  if (arm && IsMappingSymbol(name)) return false;
  switch (symbol.type) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
    case STT_OBJECT:
      return true;
    case STT_NOTYPE: {
      const uint8_t visibility = symbol.other & 3;
      return visibility != STV_HIDDEN && visibility != STV_INTERNAL &&
             symbol.section < image.sections().size() &&
             HoldsTextOrData(image.sections()[symbol.section]);
    }
    default:
      return false;
  }
}

// All of the table is read, and the beginning of each name.
void FetchTable(const elf::Image& image, uint32_t type) {
  const auto table = std::ranges::find(image.sections(), type, &elf::Section::type);
  if (table == image.sections().end()) return;
  WillRead(image.RawBytes(*table));
  if (table->link < image.sections().size()) {
    WillRead(image.RawBytes(image.sections()[table->link]));
  }
}

void AddSymbols(const elf::Image& image, elf::SymbolCursor symbols, SymbolTableBuilder& builder) {
  builder.Reserve(symbols.count());
  // In a relocatable file (a kernel module) values count from their section's start.
  std::optional<elf::RelocatableLayout> layout;
  if (image.type() == ET_REL) layout.emplace(image);
  elf::Symbol symbol;
  const char* name = nullptr;
  while (symbols.NextUnmeasured(&symbol, &name)) {
    if (!Names(image, symbol, name) || (layout && !layout->IsCode(symbol.section))) continue;
    if (layout) symbol.value += layout->AddressOf(symbol.section);
    const uint64_t end = symbol.value + symbol.size;
    builder.Add({.start = symbol.value,
                 .end = end < symbol.value ? symbol.value : end,
                 .name = name,
                 .name_size = SymbolEntry::kUntilNul,
                 .binding = symbol.binding});
  }
}

}  // namespace

SymbolTable SymbolTable::FromElf(const elf::Image* main, const elf::Image* debug) {
  SymbolTableBuilder builder;
  for (const elf::Image* image : {debug, main}) {
    if (image == nullptr || builder.size() != 0) continue;
    FetchTable(*image, SHT_SYMTAB);
    AddSymbols(*image, image->Symtab(), builder);
  }
  std::vector<uint8_t> mini;
  if (main != nullptr && builder.size() == 0) {
    if (auto bytes = main->ReadGnuDebugdata()) {
      mini = std::move(*bytes);
      if (const auto inner = elf::Image::Parse(mini)) {
        AddSymbols(*inner, inner->Symtab(), builder);
      }
    }
  }
  builder.Settle();
  if (main != nullptr) {
    FetchTable(*main, SHT_DYNSYM);
    AddSymbols(*main, main->Dynsym(), builder);
    builder.Settle();
    AddPltSymbols(*main, builder);
    builder.Settle();
  }
  SymbolTable table = std::move(builder).Build();
  table.mini_debuginfo_ = std::move(mini);
  return table;
}

}  // namespace stackreel::symbolize
