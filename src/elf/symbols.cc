// The symbol tables of an image (gABI, chapter 4, "Symbol Table").
#include <elf.h>

#include <algorithm>

#include "elf/image.h"

namespace stackreel::elf {

SymbolCursor::SymbolCursor(ByteView table, ByteView names, size_t entry_size, Class elf_class,
                           Endian endian)
    : table_(table),
      names_(AsText(names)),
      entry_size_(entry_size),
      class_(elf_class),
      endian_(endian) {
  names_ = names_.substr(0, names_.rfind('\0') + 1);
}

// Elf64_Sym: name 4, info 1, other 1, section 2, value 8, size 8;
// Elf32_Sym: name 4, value 4, size 4, info 1, other 1, section 2.
bool SymbolCursor::NextUnmeasured(Symbol* symbol, const char** name) {
  if (next_ >= count()) return false;
  const uint8_t* entry = table_.data() + next_++ * entry_size_;
  const auto name_offset = LoadUnaligned<uint32_t>(entry, endian_);
  const bool is_64 = class_ == Class::k64;
  const uint8_t* info = entry + (is_64 ? 4 : 12);
  symbol->name = {};
  symbol->value = is_64 ? LoadUnaligned<uint64_t>(entry + 8, endian_)
                        : LoadUnaligned<uint32_t>(entry + 4, endian_);
  symbol->size = is_64 ? LoadUnaligned<uint64_t>(entry + 16, endian_)
                       : LoadUnaligned<uint32_t>(entry + 8, endian_);
  symbol->type = info[0] & 0xf;
  symbol->binding = info[0] >> 4;
  symbol->other = info[1];
  symbol->section = LoadUnaligned<uint16_t>(info + 2, endian_);
  *name = name_offset < names_.size() ? names_.data() + name_offset : nullptr;
  return true;
}

bool SymbolCursor::Next(Symbol* symbol) {
  const char* name = nullptr;
  if (!NextUnmeasured(symbol, &name)) return false;
  if (name != nullptr) symbol->name = name;
  return true;
}

SymbolCursor Image::Symbols(uint32_t section_type) const {
  const auto section = std::ranges::find(sections_, section_type, &Section::type);
  if (section == sections_.end() || section->link >= sections_.size()) return {};
  const size_t least = class_ == Class::k64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  return {RawBytes(*section), RawBytes(sections_[section->link]),
          std::max<uint64_t>(section->entry_size, least), class_, endian_};
}

std::vector<Symbol> Image::ReadSymbols(uint32_t section_type) const {
  SymbolCursor cursor = Symbols(section_type);
  std::vector<Symbol> symbols;
  symbols.reserve(cursor.count());
  Symbol symbol;
  cursor.Next(&symbol);  // entry 0 is reserved
  while (cursor.Next(&symbol)) {
    if (symbol.name.data() != nullptr) symbols.push_back(symbol);
  }
  return symbols;
}

}  // namespace stackreel::elf
