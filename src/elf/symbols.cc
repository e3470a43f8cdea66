// The symbol tables of an image (gABI, chapter 4, "Symbol Table").
#include <elf.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "elf/image.h"

namespace stackreel::elf {

namespace {

// Gives the offset of the name in `name_offset`.
Symbol ReadSymbol(ByteReader& reader, Class elf_class, uint32_t* name_offset) {
  Symbol symbol;
  *name_offset = reader.U32();
  uint8_t info = 0;
  if (elf_class == Class::k64) {
    info = reader.U8();
    symbol.other = reader.U8();
    symbol.section = reader.U16();
    symbol.value = reader.U64();
    symbol.size = reader.U64();
  } else {
    symbol.value = reader.U32();
    symbol.size = reader.U32();
    info = reader.U8();
    symbol.other = reader.U8();
    symbol.section = reader.U16();
  }
  symbol.type = info & 0xf;
  symbol.binding = info >> 4;
  return symbol;
}

}  // namespace

bool SymbolCursor::Next(Symbol* symbol) {
  if (next_ >= count()) return false;
  ByteReader reader(table_.subspan(next_++ * entry_size_, entry_size_), endian_);
  uint32_t name_offset = 0;
  *symbol = ReadSymbol(reader, class_, &name_offset);
  if (name_offset < names_.size()) {
    const size_t end = names_.find('\0', name_offset);
    if (end != std::string_view::npos) {
      symbol->name = names_.substr(name_offset, end - name_offset);
    }
  }
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
