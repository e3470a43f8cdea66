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

std::vector<Symbol> Image::ReadSymbolTable(uint32_t section_type) const {
  std::vector<Symbol> symbols;
  const auto section = std::ranges::find(sections_, section_type, &Section::type);
  if (section == sections_.end() || section->link >= sections_.size()) return symbols;
  const std::string_view names = AsText(RawBytes(sections_[section->link]));
  const ByteView bytes = RawBytes(*section);
  const size_t least = class_ == Class::k64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  const size_t entry_size = std::max<uint64_t>(section->entry_size, least);
  const size_t count = bytes.size() / entry_size;
  symbols.resize(count);
  for (size_t i = 1; i < count; ++i) {
    ByteReader reader(bytes.subspan(i * entry_size, least), endian_);
    uint32_t name_offset = 0;
    symbols[i] = ReadSymbol(reader, class_, &name_offset);
    if (name_offset >= names.size()) continue;
    const size_t end = names.find('\0', name_offset);
    if (end == std::string_view::npos) continue;
    symbols[i].name = names.substr(name_offset, end - name_offset);
  }
  return symbols;
}

std::vector<Symbol> Image::ReadDynsymTable() const { return ReadSymbolTable(SHT_DYNSYM); }

std::vector<Symbol> Image::ReadSymbols(uint32_t section_type) const {
  std::vector<Symbol> symbols = ReadSymbolTable(section_type);
  // Entry 0 is reserved; a name outside the string table has null data, an empty one has not.
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.name.data() == nullptr; });
  return symbols;
}

}  // namespace stackreel::elf
