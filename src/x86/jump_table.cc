#include "x86/jump_table.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <array>
#include <optional>

namespace stackreel::x86 {
namespace {

// How far before a jump its parts are looked for, in instructions.
constexpr size_t kLookBack = 32;
constexpr size_t kMaxEntries = size_t{1} << 16;
// Of a table that is only guessed at, one of this many first entries must lie in the function.
constexpr uint32_t kTelling = 16;

// An instruction with its operands.
struct Decoded {
  uint32_t offset = 0;
  ZydisDecodedInstruction instruction;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;

  [[nodiscard]] bool HasOperands(uint8_t count) const {
    return instruction.operand_count_visible >= count;
  }
  [[nodiscard]] bool IsRegister(uint8_t i) const {
    return HasOperands(i + 1) && operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER;
  }
  [[nodiscard]] bool IsMemory(uint8_t i) const {
    return HasOperands(i + 1) && operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY;
  }
};

// eax, ax and al are rax.
ZydisRegister Whole(ZydisRegister reg) {
  return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
}

bool Writes(const Decoded& at, ZydisRegister reg) {
  return std::any_of(at.operands.begin(), at.operands.begin() + at.instruction.operand_count,
                     [&](const ZydisDecodedOperand& operand) {
                       return operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
                              (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
                              Whole(operand.reg.value) == reg;
                     });
}

// Loads one entry of a table: an index, scaled by the size of an entry.
bool LoadsEntry(const Decoded& at, uint8_t operand, uint8_t scale) {
  return at.IsMemory(operand) && at.operands[operand].mem.index != ZYDIS_REGISTER_NONE &&
         at.operands[operand].mem.scale == scale;
}

class JumpResolver {
 public:
  JumpResolver(ByteView code, const LoadedBytes& loaded, FunctionFlow& flow)
      : code_(code.first(flow.decoded)), loaded_(loaded), flow_(flow) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  }

  void Resolve(uint32_t jump) {
    // The jump and what is before it, nearest first.
    const auto found = std::ranges::lower_bound(flow_.instructions, jump);
    const auto index = static_cast<size_t>(found - flow_.instructions.begin());
    before_.clear();
    for (size_t i = index + 1; i-- > 0 && before_.size() <= kLookBack;) {
      before_.push_back(DecodeAt(flow_.instructions[i]));
    }
    bound_ = Bound();
    const Decoded& at = before_.front();
    if (at.IsMemory(0)) {
      if (LoadsEntry(at, 0, 8)) ResolveAddresses(at.operands[0].mem);
    } else if (at.IsRegister(0)) {
      ResolveRegister(Whole(at.operands[0].reg.value));
    }
  }

 private:
  Decoded DecodeAt(uint32_t offset) const {
    Decoded at;
    at.offset = offset;
    const ByteView bytes = code_.subspan(offset);
    ZydisDecoderDecodeFull(&decoder_, bytes.data(), bytes.size(), &at.instruction,
                           at.operands.data());
    return at;
  }

  // What the register of the jump was last made of.
  void ResolveRegister(ZydisRegister reg) {
    for (size_t i = 1; i < before_.size(); ++i) {
      const Decoded& at = before_[i];
      if (!Writes(at, reg)) continue;
      if (at.instruction.mnemonic == ZYDIS_MNEMONIC_ADD) {
        ResolveOffsets(i);
      } else if (at.instruction.mnemonic == ZYDIS_MNEMONIC_MOV && LoadsEntry(at, 1, 8)) {
        ResolveAddresses(at.operands[1].mem);
      } else if (at.instruction.mnemonic == ZYDIS_MNEMONIC_SUB) {
        flow_.unresolved.push_back(before_.front().offset);
      }
      return;  // anything else is a pointer
    }
  }

  // before_[add] adds a table's address and an entry of it, which was loaded before; without
  // optimisation, from an address computed apart.
  void ResolveOffsets(size_t add) {
    bool found = false;
    for (size_t i = add + 1; i < before_.size() && !found; ++i) {
      const Decoded& at = before_[i];
      if (at.instruction.mnemonic != ZYDIS_MNEMONIC_MOVSXD || !LoadsEntry(at, 1, 4)) continue;
      found = ReadTables(at.operands[1].mem, /*entry_size=*/4);
      break;
    }
    if (!found) {
      for (const Svma base : BasesOf(ZYDIS_REGISTER_NONE)) found |= ReadTable(base, 4);
    }
    if (!found) flow_.unresolved.push_back(before_.front().offset);
  }

  // A table that is not of places in this function is one of functions, called last.
  void ResolveAddresses(const ZydisDecodedOperandMem& memory) {
    ReadTables(memory, /*entry_size=*/8);
  }

  // Reads the table at `memory`; at each that its base register is made to hold, if there are
  // several: which of them it is, the nearest, is not known for sure.
  bool ReadTables(const ZydisDecodedOperandMem& memory, size_t entry_size) {
    const auto displacement = static_cast<uint64_t>(memory.disp.value);
    if (memory.base == ZYDIS_REGISTER_NONE) return ReadTable(Svma(displacement), entry_size);
    bool any = false;
    for (const Svma base : BasesOf(Whole(memory.base))) {
      any |= ReadTable(base + displacement, entry_size);
    }
    return any;
  }

  // Where any lea of the function lets the register point; where any lets any register point, if
  // none does this one (it was spilled, or moved).
  std::vector<Svma> BasesOf(ZydisRegister reg) {
    if (!leas_read_) ReadLeas();
    std::vector<Svma> bases;
    for (const auto& [to, svma] : leas_) {
      if (to == reg) bases.push_back(svma);
    }
    if (bases.empty()) {
      for (const auto& [to, svma] : leas_) bases.push_back(svma);
    }
    return bases;
  }
  void ReadLeas() {
    leas_read_ = true;
    for (const uint32_t offset : flow_.instructions) {
      // rex.w lea reg, [rip+…]: spares decoding all the rest.
      if (offset + 7 > code_.size() || (code_[offset] & 0xf8) != 0x48 ||
          code_[offset + 1] != 0x8d || (code_[offset + 2] & 0xc7) != 5) {
        continue;
      }
      const auto displacement = LoadUnaligned<int32_t>(code_.data() + offset + 3, Endian::kLittle);
      const Svma svma = flow_.start + offset + 7 + static_cast<uint64_t>(int64_t{displacement});
      const auto number = (code_[offset + 2] >> 3 & 7) | ((code_[offset] & 4) << 1);
      const auto reg = static_cast<ZydisRegister>(ZYDIS_REGISTER_RAX + number);
      if (std::ranges::find(leas_, std::pair(reg, svma)) == leas_.end()) {
        leas_.emplace_back(reg, svma);
      }
    }
  }

  // Each table is read once, though a hundred jumps of an interpreter may use it.
  bool ReadTable(Svma table, size_t entry_size) {
    const size_t limit = bound_.value_or(kMaxEntries);
    auto known = std::ranges::find_if(read_, [&](const ReadResult& result) {
      return result.table == table && result.entry_size == entry_size && result.limit >= limit;
    });
    if (known == read_.end()) {
      read_.push_back({table, entry_size, limit, ReadEntries(table, entry_size, limit)});
      known = std::prev(read_.end());
    }
    if (known->entries == 0) return false;
    const auto entries = static_cast<uint32_t>(std::min<size_t>(known->entries, limit));
    flow_.tables.push_back({before_.front().offset, table, entries, bound_.has_value()});
    return true;
  }
  // How many; 0 if none is in the function. Those that are become branches.
  uint32_t ReadEntries(Svma table, size_t entry_size, size_t limit) {
    const ByteView bytes = loaded_(table);
    const size_t count = std::min(bytes.size() / entry_size, limit);
    uint32_t entries = 0;
    bool any_inside = false;
    for (; entries < count; ++entries) {
      const Svma target = EntryAt(table, bytes.data() + entries * entry_size, entry_size);
      if (target >= flow_.start && target - flow_.start < code_.size()) {
        any_inside = true;
        flow_.branches.push_back({before_.front().offset, target, /*is_indirect=*/true});
      } else if (!bound_ || (!any_inside && entries >= kTelling)) {
        break;  // with a bound known, it can go to a cold part
      }
    }
    return any_inside ? entries : 0;
  }
  static Svma EntryAt(Svma table, const uint8_t* entry, size_t entry_size) {
    if (entry_size == 8) return Svma(LoadUnaligned<uint64_t>(entry, Endian::kLittle));
    const auto offset = LoadUnaligned<int32_t>(entry, Endian::kLittle);
    return table + static_cast<uint64_t>(int64_t{offset});
  }

  // From the nearest comparison with a constant that a ja or jbe follows: "cmp $9, I; ja default".
  std::optional<size_t> Bound() const {
    for (size_t i = 1; i + 1 < before_.size(); ++i) {
      const ZydisMnemonic condition = before_[i].instruction.mnemonic;
      if (condition != ZYDIS_MNEMONIC_JNBE && condition != ZYDIS_MNEMONIC_JBE) continue;
      const Decoded& compare = before_[i + 1];
      if (compare.instruction.mnemonic != ZYDIS_MNEMONIC_CMP || !compare.HasOperands(2) ||
          compare.operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        return std::nullopt;
      }
      const uint64_t last = compare.operands[1].imm.value.u;
      if (last >= kMaxEntries) return std::nullopt;
      return last + 1;
    }
    return std::nullopt;
  }

  ByteView code_;
  const LoadedBytes& loaded_;
  FunctionFlow& flow_;
  ZydisDecoder decoder_;
  std::vector<Decoded> before_;
  std::optional<size_t> bound_;
  struct ReadResult {
    Svma table;
    size_t entry_size;
    size_t limit;
    uint32_t entries;
  };
  std::vector<ReadResult> read_;
  std::vector<std::pair<ZydisRegister, Svma>> leas_;
  bool leas_read_ = false;
};

}  // namespace

void ResolveIndirectJumps(ByteView code, std::span<const uint32_t> jumps, const LoadedBytes& loaded,
                          FunctionFlow& flow) {
  if (jumps.empty()) return;
  JumpResolver resolver(code, loaded, flow);
  for (const uint32_t jump : jumps) resolver.Resolve(jump);
}

}  // namespace stackreel::x86
