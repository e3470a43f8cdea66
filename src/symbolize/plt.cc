#include "symbolize/plt.h"

#include <elf.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/byte_reader.h"

namespace stackreel::symbolize {

namespace {

// GOT slot → name of the symbol that the dynamic linker puts there; "" where it puts what a
// function of the file itself chooses (an ifunc).
using SlotNames = std::unordered_map<uint64_t, std::string_view>;

// Relocation types that fill a slot with a symbol's address (psABI of each machine).
bool FillsSlot(uint16_t machine, uint32_t type) {
  if (machine == EM_X86_64) return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT;
  return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT;
}

SlotNames ReadSlotNames(const elf::Image& image) {
  SlotNames names;
  const std::vector<elf::Symbol> symbols = image.ReadDynsymTable();
  for (const elf::Section& section : image.sections()) {
    if (section.type != SHT_RELA) continue;
    ByteReader reader(image.RawBytes(section), image.endian());
    while (reader.remaining() >= sizeof(Elf64_Rela)) {
      const uint64_t slot = reader.U64();
      const uint64_t info = reader.U64();
      reader.Skip(8);  // r_addend
      const uint64_t index = ELF64_R_SYM(info);
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(info));
      if (type == R_X86_64_IRELATIVE && image.machine() == EM_X86_64) names.emplace(slot, "");
      if (!FillsSlot(image.machine(), type)) continue;
      if (index == 0 || index >= symbols.size() || symbols[index].name.empty()) continue;
      names.emplace(slot, symbols[index].name);
    }
  }
  return names;
}

// x86-64: the slot of the first "jmp *disp32(%rip)" (ff 25) of a stub.
std::optional<uint64_t> SlotOfX86Stub(ByteView stub, uint64_t address) {
  for (size_t i = 0; i + 6 <= stub.size(); ++i) {
    if (stub[i] != 0xff || stub[i + 1] != 0x25) continue;
    const auto displacement = LoadUnaligned<int32_t>(&stub[i + 2], Endian::kLittle);
    return address + i + 6 + static_cast<uint64_t>(int64_t{displacement});
  }
  return std::nullopt;
}

// arm64: "adrp x16, PAGE" followed by "ldr x17, [x16, #OFFSET]", anywhere in the stub.
std::optional<uint64_t> SlotOfArm64Stub(ByteView stub, uint64_t address) {
  for (size_t i = 0; i + 8 <= stub.size(); i += 4) {
    const auto adrp = LoadUnaligned<uint32_t>(&stub[i], Endian::kLittle);
    const auto ldr = LoadUnaligned<uint32_t>(&stub[i + 4], Endian::kLittle);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) continue;
    const uint32_t immediate = ((adrp >> 5) & 0x7ffff) << 2 | ((adrp >> 29) & 3);
    // 21 bits, signed, counting pages.
    const int64_t pages = static_cast<int64_t>(uint64_t{immediate} << 43) >> 43;
    const uint64_t page = ((address + i) & ~uint64_t{0xfff}) + static_cast<uint64_t>(pages * 4096);
    return page + uint64_t{(ldr >> 10) & 0xfff} * 8;
  }
  return std::nullopt;
}

uint64_t StubSize(const elf::Image& image, const elf::Section& section) {
  const uint64_t stated = section.entry_size;
  if (image.machine() == EM_AARCH64) return stated == 24 ? 24 : 16;
  if (stated == 8 || stated == 16) return stated;
  return section.name == ".plt.got" ? 8 : 16;
}

void AddStubs(const elf::Image& image, const elf::Section& section, const SlotNames& names,
              SymbolTableBuilder& builder) {
  const ByteView bytes = image.RawBytes(section);
  const uint64_t size = StubSize(image, section);
  const bool arm64 = image.machine() == EM_AARCH64;
  for (uint64_t at = arm64 && section.name == ".plt" ? 32 : 0; at + size <= bytes.size();
       at += size) {
    const uint64_t address = section.addr + at;
    const ByteView stub = bytes.subspan(at, size);
    const auto slot = arm64 ? SlotOfArm64Stub(stub, address) : SlotOfX86Stub(stub, address);
    if (!slot) continue;
    const auto name = names.find(*slot);
    if (name == names.end()) continue;
    builder.AddNamed(
        {.start = address, .end = address + size, .type = STT_FUNC, .binding = STB_GLOBAL},
        std::string(name->second) + "@plt");
  }
}

}  // namespace

void AddPltSymbols(const elf::Image& image, SymbolTableBuilder& builder) {
  if (image.elf_class() != elf::Class::k64 || image.endian() != Endian::kLittle) return;
  if (image.machine() != EM_X86_64 && image.machine() != EM_AARCH64) return;
  SlotNames names;
  for (const elf::Section& section : image.sections()) {
    if (section.name != ".plt" && section.name != ".plt.sec" && section.name != ".plt.got")
      continue;
    if (names.empty()) names = ReadSlotNames(image);
    AddStubs(image, section, names, builder);
  }
}

}  // namespace stackreel::symbolize
