#include "symbolize/plt.h"

#include <elf.h>
#include <fmt/format.h>

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace stackreel::symbolize {

namespace {

// A stub is known by the GOT slot it jumps through, whatever linker laid it out.
struct Stub {
  uint64_t start = 0;
  std::string_view name;
};

// Whose address the dynamic linker puts into GOT slots; "" where an IFUNC without a name decides.
struct SlotNames {
  std::unordered_map<uint64_t, std::string_view> by_slot;
  std::vector<std::string_view> by_index;  // in the order of .rela.plt
};

enum class SlotKind : uint8_t { kOther, kSymbol, kResolver };

// psABI of x86-64 and of arm64, "Relocation": slots that get a symbol's address, or what an IFUNC's
// resolver at the addend returns.
SlotKind KindOf(uint16_t machine, uint64_t type) {
  if (machine == EM_X86_64) {
    if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT) return SlotKind::kSymbol;
    return type == R_X86_64_IRELATIVE ? SlotKind::kResolver : SlotKind::kOther;
  }
  if (type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT) return SlotKind::kSymbol;
  return type == R_AARCH64_IRELATIVE ? SlotKind::kResolver : SlotKind::kOther;
}

// The name of symbol `index`; empty if there is none.
std::string_view NameOfSymbol(elf::SymbolCursor& dynsym, size_t index) {
  elf::Symbol symbol;
  dynsym.Seek(index);
  return dynsym.Next(&symbol) ? symbol.name : std::string_view();
}

SlotNames ReadSlotNames(const elf::Image& image, const SymbolTableBuilder& builder) {
  SlotNames names;
  elf::SymbolCursor dynsym = image.Dynsym();
  for (const elf::Section& section : image.sections()) {
    if (section.type != SHT_RELA) continue;
    const ByteView table = image.RawBytes(section);
    const bool by_index = section.name == ".rela.plt";
    // Large libraries have hundreds of thousands, nearly all of them of another kind.
    for (size_t at = 0; at + sizeof(Elf64_Rela) <= table.size(); at += sizeof(Elf64_Rela)) {
      const uint8_t* entry = table.data() + at;
      const auto info =
          LoadUnaligned<uint64_t>(entry + offsetof(Elf64_Rela, r_info), image.endian());
      std::string_view name;
      const SlotKind kind = KindOf(image.machine(), ELF64_R_TYPE(info));
      switch (kind) {
        case SlotKind::kSymbol:
          name = NameOfSymbol(dynsym, ELF64_R_SYM(info));
          break;
        case SlotKind::kResolver:
          name = builder.NameAt(
              LoadUnaligned<uint64_t>(entry + offsetof(Elf64_Rela, r_addend), image.endian()));
          break;
        case SlotKind::kOther:
          break;
      }
      if (by_index) names.by_index.push_back(name);
      if (!name.empty() || kind == SlotKind::kResolver) {
        names.by_slot.emplace(
            LoadUnaligned<uint64_t>(entry + offsetof(Elf64_Rela, r_offset), image.endian()), name);
      }
    }
  }
  return names;
}

std::optional<std::string_view> Lookup(const SlotNames& names, uint64_t slot) {
  const auto it = names.by_slot.find(slot);
  if (it == names.by_slot.end()) return std::nullopt;
  return it->second;
}

// "jmp *disp32(%rip)" ff 25, or a retpoline's "mov disp32(%rip), %r11" 4c 8b 1d. Stubs are aligned
// to 8 bytes, and in them only endbr64 and prefixes stand before that.
std::vector<Stub> FindX86Stubs(ByteView code, uint64_t svma, const SlotNames& names) {
  std::vector<Stub> stubs;
  for (size_t i = 0; i + 7 <= code.size(); ++i) {
    size_t length = 0;
    if (code[i] == 0xff && code[i + 1] == 0x25) {
      length = 2;
    } else if (code[i] == 0x4c && code[i + 1] == 0x8b && code[i + 2] == 0x1d) {
      length = 3;
    } else {
      continue;
    }
    if (i + length + 4 > code.size()) break;
    const int64_t displacement = LoadUnaligned<int32_t>(&code[i + length], Endian::kLittle);
    const auto name = Lookup(names, svma + i + length + 4 + static_cast<uint64_t>(displacement));
    if (name) stubs.push_back({svma + i / 8 * 8, *name});
  }
  return stubs;
}

// Stubs of a .plt beside a .plt.sec only bind lazily: "[endbr64;] push $INDEX", 16 bytes each.
std::vector<Stub> FindX86LazyStubs(ByteView code, uint64_t svma, const SlotNames& names) {
  std::vector<Stub> stubs;
  constexpr size_t kEndbr = 4;
  for (size_t i = 0; i + 16 <= code.size(); i += 16) {
    const size_t push = code[i] == 0xf3 ? i + kEndbr : i;
    if (code[push] != 0x68) continue;
    const auto index = LoadUnaligned<uint32_t>(&code[push + 1], Endian::kLittle);
    if (index >= names.by_index.size() || names.by_index[index].empty()) continue;
    stubs.push_back({svma + i, names.by_index[index]});
  }
  return stubs;
}

// "adrp x16, PAGE" followed by "ldr x17, [x16, #OFFSET]"; "bti c" may stand before.
std::vector<Stub> FindArm64Stubs(ByteView code, uint64_t svma, const SlotNames& names) {
  constexpr uint32_t kBtiC = 0xd503245f;
  std::vector<Stub> stubs;
  for (size_t i = 0; i + 8 <= code.size(); i += 4) {
    const auto adrp = LoadUnaligned<uint32_t>(&code[i], Endian::kLittle);
    const auto ldr = LoadUnaligned<uint32_t>(&code[i + 4], Endian::kLittle);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211) continue;
    // 21 bits, signed, counting pages: bits 23..5 above bits 30..29.
    const uint64_t immediate = uint64_t{(adrp >> 5) & 0x7ffff} << 2 | ((adrp >> 29) & 3);
    const auto pages = static_cast<uint64_t>(static_cast<int64_t>(immediate << 43) >> 43);
    const uint64_t slot =
        ((svma + i) & ~uint64_t{0xfff}) + pages * 4096 + uint64_t{(ldr >> 10) & 0xfff} * 8;
    const auto name = Lookup(names, slot);
    if (!name) continue;
    const bool bti = i >= 4 && LoadUnaligned<uint32_t>(&code[i - 4], Endian::kLittle) == kBtiC;
    stubs.push_back({svma + (bti ? i - 4 : i), *name});
  }
  return stubs;
}

}  // namespace

void AddPltSymbols(const elf::Image& image, SymbolTableBuilder& builder) {
  if (image.elf_class() != elf::Class::k64 || image.endian() != Endian::kLittle) return;
  if (image.machine() != EM_X86_64 && image.machine() != EM_AARCH64) return;
  std::optional<SlotNames> names;
  std::vector<std::pair<SymbolEntry, std::string>> found;
  for (const elf::Section& section : image.sections()) {
    if (section.name != ".plt" && section.name != ".plt.sec" && section.name != ".plt.got") {
      continue;
    }
    if (!names) names = ReadSlotNames(image, builder);
    const ByteView code = image.RawBytes(section);
    std::vector<Stub> stubs = image.machine() == EM_AARCH64
                                  ? FindArm64Stubs(code, section.addr, *names)
                                  : FindX86Stubs(code, section.addr, *names);
    if (stubs.empty() && image.machine() == EM_X86_64) {
      stubs = FindX86LazyStubs(code, section.addr, *names);
    }
    for (size_t i = 0; i < stubs.size(); ++i) {
      const uint64_t end = i + 1 < stubs.size() ? stubs[i + 1].start : section.addr + code.size();
      SymbolEntry entry = {.start = stubs[i].start, .end = end};
      entry.binding = STB_GLOBAL;
      found.emplace_back(entry, std::string(stubs[i].name) + "@plt");
    }
  }
  for (auto& [entry, name] : found) builder.AddNamed(entry, std::move(name));
}

}  // namespace stackreel::symbolize
