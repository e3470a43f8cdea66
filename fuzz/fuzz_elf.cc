// Everything that is read from an ELF file, and the symbol table made of it.
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "elf/image.h"
#include "symbolize/symbol_table.h"

using stackreel::ByteView;
using stackreel::FileOffset;
using stackreel::Svma;
using stackreel::elf::Image;
using stackreel::symbolize::SymbolRange;
using stackreel::symbolize::SymbolTable;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteView bytes(data, size);
  const auto image = Image::Parse(bytes);
  if (!image) return 0;
  for (const auto& section : image->sections()) {
    (void)image->FindSection(section.name);
    if (const auto read = image->ReadSection(section)) CHECK(read->view().size() <= 1U << 30);
  }
  for (const auto& segment : image->segments()) {
    const ByteView loaded = image->BytesAt(Svma(segment.vaddr));
    CHECK(loaded.size() <= size);
    (void)image->SvmaOf(FileOffset(segment.offset));
    (void)image->OffsetOf(Svma(segment.vaddr));
  }
  (void)image->ReadBuildId();
  (void)image->ReadDebugLink();
  (void)image->ReadDebugAltLink();
  (void)image->ReadSymtab();
  (void)image->ReadDynsym();
  const SymbolTable table = SymbolTable::FromElf(&*image, nullptr);
  Svma last;
  for (size_t i = 0; i < table.size(); ++i) {
    const SymbolRange symbol = table.At(i);
    CHECK(last <= symbol.start);
    last = symbol.start;
    for (const Svma svma : {symbol.start, symbol.end, symbol.start + 1}) {
      const std::optional<SymbolRange> found = table.Find(svma);
      CHECK(!found || (found->start <= svma && svma < found->end));
    }
  }
  return 0;
}
