// Call-frame instructions (DWARF 5, section 6.4.2; GNU and AArch64 extensions) → rows.
#include <fmt/format.h>

#include <string_view>

#include "dwarf/cfi.h"
#include "dwarf/frame_entry.h"
#include "dwarf/pointer_encoding.h"

namespace stackreel::dwarf {
namespace {

enum : uint8_t {
  // The high two bits, with an operand in the low six.
  kAdvanceLoc = 0x40,
  kOffset = 0x80,
  kRestore = 0xc0,
  // Whole bytes.
  kNop = 0x00,
  kSetLoc = 0x01,
  kAdvanceLoc1 = 0x02,
  kAdvanceLoc2 = 0x03,
  kAdvanceLoc4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefCfa = 0x0c,
  kDefCfaRegister = 0x0d,
  kDefCfaOffset = 0x0e,
  kDefCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSf = 0x11,
  kDefCfaSf = 0x12,
  kDefCfaOffsetSf = 0x13,
  kValOffset = 0x14,
  kValOffsetSf = 0x15,
  kValExpression = 0x16,
  kMipsAdvanceLoc8 = 0x1d,
  kAarch64SetRaState = 0x2b,
  kAarch64NegateRaStateWithPc = 0x2c,
  kGnuWindowSave = 0x2d,  // AArch64: negate_ra_state
  kGnuArgsSize = 0x2e,
  kGnuNegativeOffsetExtended = 0x2f,
};

// Real code nests two deep; the bound keeps a run of remember_state bytes from filling memory.
constexpr size_t kMaxRemembered = 64;

constexpr uint16_t kMachineSparcV9 = 43;
constexpr uint16_t kMachineAarch64 = 183;

std::unexpected<Error> Damaged(std::string message) {
  return Fail(ErrorKind::kDamaged, std::move(message));
}

int64_t Scale(uint64_t factored, int64_t align) {
  return static_cast<int64_t>(factored * static_cast<uint64_t>(align));
}

}  // namespace

RowCursor::RowCursor(const Fde& fde, const FrameSections& sections)
    : sections_(&sections), fde_(fde), location_(fde.start.value) {
  row_.end = fde_.start;
  reader_ = ByteReader(fde_.cie.instructions, sections.endian);
  while (!reader_.AtEnd() && initial_status_) initial_status_ = Step();
  location_ = fde_.start.value;
  initial_ = row_.registers;
  remembered_.clear();
  reader_ = ByteReader(fde_.instructions, sections.endian);
}

Result<bool> RowCursor::Next() {
  TRY(initial_status_);
  row_.start = row_.end;
  while (!done_) {
    if (reader_.AtEnd()) {
      done_ = true;
      row_.end = fde_.end;
      return row_.start < row_.end;
    }
    TRY(Step());
    if (location_ > row_.start.value) {
      row_.end = std::min(Svma(location_), fde_.end);
      done_ = row_.end == fde_.end;
      if (row_.start < row_.end) return true;
    }
  }
  return false;
}

Status RowCursor::AdvanceTo(uint64_t location) {
  if (location < location_) {
    return Damaged(fmt::format("CFI location goes back from {:#x} to {:#x}", location_, location));
  }
  location_ = location;
  return {};
}

void RowCursor::SetRule(uint64_t reg, RuleKind kind, int64_t offset, ByteView expression) {
  if (reg >= kMaxRegisters) return;  // a vector register or the like: nobody asks for it
  RegisterRule& rule = row_.registers[reg];
  rule.kind = kind;
  rule.stated = true;
  rule.offset = offset;
  rule.expression = expression;
}

Status RowCursor::SetCfaRegister(uint64_t reg) {
  if (reg >= kMaxRegisters) return Damaged(fmt::format("CFA in register {}", reg));
  row_.cfa.is_expression = false;
  row_.cfa.reg = static_cast<uint16_t>(reg);
  return {};
}

Status RowCursor::Restore(uint64_t reg) {
  if (reg < kMaxRegisters) row_.registers[reg] = initial_[reg];
  return {};
}

ByteView RowCursor::Block() { return reader_.Bytes(reader_.Uleb128()); }

// An address, encoded as the FDE's own; relative forms count from where it lies in the section.
Result<uint64_t> RowCursor::SetLocOperand() {
  const FrameSection section =
      fde_.in_debug_frame ? DebugFrameOf(*sections_) : EhFrameOf(*sections_);
  PointerBases bases = BasesFor(*sections_, section);
  bases.address_size = fde_.cie.address_size;
  bases.function = fde_.start;
  bases.section =
      section.svma + static_cast<uint64_t>(fde_.instructions.data() - section.bytes.data());
  const auto location = ReadEncodedPointer(reader_, fde_.cie.fde_encoding, bases);
  if (!location) return Damaged("unreadable operand of DW_CFA_set_loc");
  return *location;
}

Status RowCursor::Step() {
  const uint8_t byte = reader_.U8();
  const uint8_t low = byte & 0x3f;
  switch (byte & 0xc0) {
    case kAdvanceLoc:
      return AdvanceTo(location_ + low * fde_.cie.code_align);
    case kOffset:
      SetRule(low, RuleKind::kOffset, Scale(reader_.Uleb128(), fde_.cie.data_align));
      break;
    case kRestore:
      return Restore(low);
    default:
      TRY(StepExtended(byte));
  }
  if (!reader_.ok()) return Damaged("CFI instructions cut short");
  return {};
}

Status RowCursor::StepExtended(uint8_t opcode) {
  const int64_t data_align = fde_.cie.data_align;
  const uint64_t code_align = fde_.cie.code_align;
  switch (opcode) {
    case kNop:
      return {};
    case kSetLoc: {
      TRY_ASSIGN(const uint64_t location, SetLocOperand());
      return AdvanceTo(location);
    }
    case kAdvanceLoc1:
      return AdvanceTo(location_ + reader_.U8() * code_align);
    case kAdvanceLoc2:
      return AdvanceTo(location_ + reader_.U16() * code_align);
    case kAdvanceLoc4:
      return AdvanceTo(location_ + reader_.U32() * code_align);
    case kMipsAdvanceLoc8:
      return AdvanceTo(location_ + reader_.U64() * code_align);
    case kRestoreExtended:
      return Restore(reader_.Uleb128());
    case kRememberState:
      if (remembered_.size() >= kMaxRemembered) return Damaged("too many remembered CFI states");
      remembered_.push_back(row_);
      return {};
    case kRestoreState: {
      if (remembered_.empty()) return Damaged("DW_CFA_restore_state with nothing remembered");
      const Row& saved = remembered_.back();
      row_.cfa = saved.cfa;
      row_.registers = saved.registers;
      remembered_.pop_back();
      return {};
    }
    case kDefCfa:
      TRY(SetCfaRegister(reader_.Uleb128()));
      row_.cfa.offset = static_cast<int64_t>(reader_.Uleb128());
      return {};
    case kDefCfaSf:
      TRY(SetCfaRegister(reader_.Uleb128()));
      row_.cfa.offset = Scale(static_cast<uint64_t>(reader_.Sleb128()), data_align);
      return {};
    case kDefCfaRegister:
      return SetCfaRegister(reader_.Uleb128());
    case kDefCfaOffset:
      row_.cfa.offset = static_cast<int64_t>(reader_.Uleb128());
      return {};
    case kDefCfaOffsetSf:
      row_.cfa.offset = Scale(static_cast<uint64_t>(reader_.Sleb128()), data_align);
      return {};
    case kDefCfaExpression:
      row_.cfa.is_expression = true;
      row_.cfa.expression = Block();
      return {};
    case kGnuArgsSize:
      row_.args_size = static_cast<uint32_t>(reader_.Uleb128());
      return {};
    default:
      return StepRegister(opcode);
  }
}

Status RowCursor::StepRegister(uint8_t opcode) {
  const int64_t data_align = fde_.cie.data_align;
  if (opcode >= kAarch64SetRaState && opcode <= kGnuWindowSave) return StepVendor(opcode);
  const uint64_t reg = reader_.Uleb128();
  switch (opcode) {
    case kOffsetExtended:
      SetRule(reg, RuleKind::kOffset, Scale(reader_.Uleb128(), data_align));
      return {};
    case kOffsetExtendedSf:
      SetRule(reg, RuleKind::kOffset, Scale(static_cast<uint64_t>(reader_.Sleb128()), data_align));
      return {};
    case kGnuNegativeOffsetExtended:
      SetRule(reg, RuleKind::kOffset, -Scale(reader_.Uleb128(), data_align));
      return {};
    case kValOffset:
      SetRule(reg, RuleKind::kValOffset, Scale(reader_.Uleb128(), data_align));
      return {};
    case kValOffsetSf:
      SetRule(reg, RuleKind::kValOffset,
              Scale(static_cast<uint64_t>(reader_.Sleb128()), data_align));
      return {};
    case kUndefined:
      SetRule(reg, RuleKind::kUndefined, 0);
      return {};
    case kSameValue:
      SetRule(reg, RuleKind::kSameValue, 0);
      return {};
    case kRegister: {
      const uint64_t other = reader_.Uleb128();
      SetRule(reg, other < kMaxRegisters ? RuleKind::kRegister : RuleKind::kUndefined, 0);
      if (reg < kMaxRegisters) row_.registers[reg].other = static_cast<uint16_t>(other);
      return {};
    }
    case kExpression:
      SetRule(reg, RuleKind::kExpression, 0, Block());
      return {};
    case kValExpression:
      SetRule(reg, RuleKind::kValExpression, 0, Block());
      return {};
    default:
      return Damaged(fmt::format("unknown call-frame instruction {:#04x}", opcode));
  }
}

// 0x2b-0x2d mean something on two machines only.
Status RowCursor::StepVendor(uint8_t opcode) {
  if (sections_->machine == kMachineSparcV9 && opcode == kGnuWindowSave) {
    for (unsigned reg = 16; reg < 32; ++reg) {
      SetRule(reg, RuleKind::kOffset, static_cast<int64_t>(reg - 16) * 8);
    }
    return {};
  }
  if (sections_->machine != kMachineAarch64) {
    return Damaged(fmt::format("unknown call-frame instruction {:#04x}", opcode));
  }
  RegisterRule& state = row_.registers[kAarch64RaSignState];
  state.stated = true;
  if (opcode == kAarch64SetRaState) {
    state.offset = static_cast<int64_t>(reader_.Uleb128());
    reader_.Sleb128();  // where the signing instruction is: needed to authenticate only
  } else if (opcode == kAarch64NegateRaStateWithPc) {
    state.offset = state.offset == 0 ? 2 : 0;
  } else {
    state.offset = state.offset == 0 ? 1 : 0;
  }
  return {};
}

}  // namespace stackreel::dwarf
