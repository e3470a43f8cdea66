#include "elf/relocation.h"

#include <elf.h>

#include <algorithm>
#include <optional>

#include "base/byte_reader.h"

namespace stackreel::elf {
namespace {

struct Relocation {
  uint64_t offset = 0;
  uint32_t type = 0;
  uint32_t symbol = 0;
  std::optional<int64_t> addend;  // else it stands at the place
};

// What is stored: S + A, or S + A - P, in 4 or 8 bytes. `size` 0: nothing is.
struct Form {
  unsigned size = 0;
  bool relative = false;
};

std::optional<Form> FormOf(uint16_t machine, uint32_t type) {
  constexpr Form kNothing, kWord{4, false}, kDouble{8, false}, kRelativeWord{4, true},
      kRelativeDouble{8, true};
  if (machine == EM_X86_64) {
    switch (type) {
      case R_X86_64_NONE:
        return kNothing;
      case R_X86_64_64:
        return kDouble;
      case R_X86_64_32:
      case R_X86_64_32S:
        return kWord;
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        return kRelativeWord;
      case R_X86_64_PC64:
        return kRelativeDouble;
      default:
        return std::nullopt;
    }
  }
  if (machine == EM_386) {
    if (type == R_386_NONE) return kNothing;
    if (type == R_386_32) return kWord;
    if (type == R_386_PC32) return kRelativeWord;
  }
  if (machine == EM_AARCH64) {
    if (type == R_AARCH64_NONE) return kNothing;
    if (type == R_AARCH64_ABS64) return kDouble;
    if (type == R_AARCH64_ABS32) return kWord;
    if (type == R_AARCH64_PREL64) return kRelativeDouble;
    if (type == R_AARCH64_PREL32) return kRelativeWord;
  }
  return std::nullopt;
}

// Elf64_Rel(a): offset 8, info 8 (type in the low half) [, addend 8]; Elf32_Rel(a): offset 4,
// info 4 (type in the low byte) [, addend 4].
Relocation ReadRelocation(ByteReader& in, Class elf_class, bool with_addend) {
  Relocation out;
  if (elf_class == Class::k64) {
    out.offset = in.U64();
    const uint64_t info = in.U64();
    out.type = static_cast<uint32_t>(info);
    out.symbol = static_cast<uint32_t>(info >> 32);
    if (with_addend) out.addend = in.S64();
  } else {
    out.offset = in.U32();
    const uint32_t info = in.U32();
    out.type = info & 0xff;
    out.symbol = info >> 8;
    if (with_addend) out.addend = in.S32();
  }
  return out;
}

class Relocator {
 public:
  Relocator(const Image& image, const RelocatableLayout& layout, uint64_t address,
            std::vector<uint8_t>& bytes)
      : image_(image),
        layout_(layout),
        symbols_(image.Symtab()),
        address_(address),
        bytes_(bytes) {}

  bool Do(const Relocation& relocation) {
    const std::optional<Form> form = FormOf(image_.machine(), relocation.type);
    if (!form) return false;
    if (form->size == 0) return true;
    if (relocation.offset > bytes_.size() || bytes_.size() - relocation.offset < form->size) {
      return false;
    }
    const std::optional<uint64_t> symbol = ValueOf(relocation.symbol);
    if (!symbol) return false;
    uint8_t* place = bytes_.data() + relocation.offset;
    const bool wide = form->size == 8;
    const Endian endian = image_.endian();
    uint64_t value = *symbol;
    if (relocation.addend) {
      value += static_cast<uint64_t>(*relocation.addend);
    } else {
      value +=
          wide
              ? LoadUnaligned<uint64_t>(place, endian)
              : static_cast<uint64_t>(static_cast<int32_t>(LoadUnaligned<uint32_t>(place, endian)));
    }
    if (form->relative) value -= address_ + relocation.offset;
    if (wide) {
      StoreUnaligned<uint64_t>(place, value, endian);
    } else {
      StoreUnaligned<uint32_t>(place, static_cast<uint32_t>(value), endian);
    }
    return true;
  }

 private:
  std::optional<uint64_t> ValueOf(uint32_t number) {
    if (number == 0) return 0;
    if (number >= symbols_.count()) return std::nullopt;
    symbols_.Seek(number);
    Symbol symbol;
    const char* name = nullptr;
    if (!symbols_.NextUnmeasured(&symbol, &name)) return std::nullopt;
    if (symbol.section == SHN_ABS) return symbol.value;
    if (symbol.section == SHN_UNDEF || symbol.section >= SHN_LORESERVE) return std::nullopt;
    return layout_.AddressOf(symbol.section) + symbol.value;
  }

  const Image& image_;
  const RelocatableLayout& layout_;
  SymbolCursor symbols_;
  uint64_t address_;
  std::vector<uint8_t>& bytes_;
};

}  // namespace

RelocatableLayout::RelocatableLayout(const Image& image)
    : addresses_(image.sections().size()), is_code_(image.sections().size()) {
  enum Pass { kCode, kInitCode, kOther };
  uint64_t next = 0;
  for (const Pass pass : {kCode, kInitCode, kOther}) {
    for (size_t i = 0; i < image.sections().size(); ++i) {
      const Section& section = image.sections()[i];
      if ((section.flags & SHF_ALLOC) == 0) continue;
      const bool code = (section.flags & SHF_EXECINSTR) != 0;
      const bool init = section.name.starts_with(".init");
      if (pass != (code ? (init ? kInitCode : kCode) : kOther)) continue;
      const uint64_t align = std::max<uint64_t>(section.align, 1);
      if (next % align != 0) next += align - next % align;
      addresses_[i] = next;
      is_code_[i] = pass == kCode;
      next += section.size;
    }
  }
}

Result<std::vector<uint8_t>> ReadRelocated(const Image& image, const Section& section,
                                           const RelocatableLayout& layout, uint64_t& not_done) {
  TRY_ASSIGN(const SectionBytes read, image.ReadSection(section));
  std::vector<uint8_t> bytes(read.view().begin(), read.view().end());
  const auto number = static_cast<size_t>(&section - image.sections().data());
  Relocator relocator(image, layout, layout.AddressOf(number), bytes);
  for (const Section& table : image.sections()) {
    const bool with_addend = table.type == SHT_RELA;
    if ((!with_addend && table.type != SHT_REL) || table.info != number) continue;
    const size_t word = image.elf_class() == Class::k64 ? 8 : 4;
    ByteReader in(image.RawBytes(table), image.endian());
    while (in.remaining() >= (with_addend ? 3 : 2) * word) {
      if (!relocator.Do(ReadRelocation(in, image.elf_class(), with_addend))) ++not_done;
    }
  }
  return bytes;
}

}  // namespace stackreel::elf
