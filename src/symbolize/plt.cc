#include "symbolize/plt.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/byte_reader.h"

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

SlotNames ReadSlotNames(const elf::Image& image, const SymbolTableBuilder& builder) {
  SlotNames names;
  std::vector<std::string_view> symbols;  // names, by index in .dynsym
  elf::SymbolCursor dynsym = image.Dynsym();
  symbols.reserve(dynsym.count());
  for (elf::Symbol symbol; dynsym.Next(&symbol);) symbols.push_back(symbol.name);
  for (const elf::Section& section : image.sections()) {
    if (section.type != SHT_RELA) continue;
    ByteReader reader(image.RawBytes(section), image.endian());
    while (reader.remaining() >= sizeof(Elf64_Rela)) {
      const uint64_t slot = reader.U64();
      const uint64_t info = reader.U64();
      const uint64_t addend = reader.U64();
      std::string_view name;
      const SlotKind kind = KindOf(image.machine(), ELF64_R_TYPE(info));
      switch (kind) {
        case SlotKind::kSymbol:
          if (ELF64_R_SYM(info) < symbols.size()) name = symbols[ELF64_R_SYM(info)];
          break;
        case SlotKind::kResolver:
          name = builder.NameAt(addend);
          break;
        case SlotKind::kOther:
          break;
      }
      if (section.name == ".rela.plt") names.by_index.push_back(name);
      if (!name.empty() || kind == SlotKind::kResolver) names.by_slot.emplace(slot, name);
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
  std::vector<std::pair<SymbolCandidate, std::string>> found;
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
      SymbolCandidate candidate;
      candidate.start = stubs[i].start;
      candidate.end = end;
      candidate.type = STT_FUNC;
      candidate.binding = STB_GLOBAL;
      found.emplace_back(candidate, std::string(stubs[i].name) + "@plt");
    }
  }
  for (auto& [candidate, name] : found) builder.AddNamed(candidate, std::move(name));
}

}  // namespace stackreel::symbolize
