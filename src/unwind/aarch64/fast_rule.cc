#include "unwind/aarch64/fast_rule.h"

#include <optional>

#include "unwind/aarch64/registers.h"

namespace stackreel::unwind::aarch64 {
namespace {

using dwarf::RegisterRule;
using dwarf::RuleKind;

bool Narrow(int64_t value, int32_t& to) {
  to = static_cast<int32_t>(value);
  return to == value;
}

bool SetSaved(const RegisterRule& saved, SavedAt& where, int32_t& offset) {
  switch (saved.kind) {
    case RuleKind::kSameValue:
      where = SavedAt::kRegister;
      return true;
    case RuleKind::kUndefined:
      where = SavedAt::kNowhere;
      return true;
    case RuleKind::kOffset:
      where = SavedAt::kCfa;
      return Narrow(saved.offset, offset);
    default:
      return false;
  }
}

}  // namespace

FastRule ScannedRule(const ScannedFrame& scanned) {
  FastRule rule = Only(scanned.from_fp ? FastKind::kCfaFromFp : FastKind::kCfaFromSp);
  rule.cfa_offset = scanned.cfa_offset;
  rule.is_guessed = true;
  if (scanned.ra_offset) {
    rule.ra = SavedAt::kCfa;
    rule.ra_offset = *scanned.ra_offset;
  }
  if (scanned.fp_offset) {
    rule.fp = SavedAt::kCfa;
    rule.fp_offset = *scanned.fp_offset;
  } else if (scanned.fp_unknown) {
    rule.fp = SavedAt::kNowhere;
  }
  return rule;
}

std::optional<dwarf::Row> WithCfaAboveReturnAddress(const dwarf::Row& row, const dwarf::Cie& cie) {
  const uint16_t column = cie.return_address_register;
  if (column >= Cpu::kRegisters || cie.signal_frame || row.cfa.is_expression) return std::nullopt;
  const RegisterRule& ra = row.registers[column];
  constexpr int64_t kMost = 4096;  // beyond it the rule is bad in another way
  if (ra.kind != RuleKind::kOffset || ra.offset < 0 || ra.offset > kMost) return std::nullopt;
  const int64_t up = (ra.offset + Cpu::kWordSize + 15) / 16 * 16;
  dwarf::Row corrected = row;
  corrected.cfa.offset += up;
  for (unsigned reg = 0; reg < Cpu::kRegisters; ++reg) {
    RegisterRule& saved = corrected.registers[reg];
    if (saved.kind == RuleKind::kOffset || saved.kind == RuleKind::kValOffset) saved.offset -= up;
  }
  return corrected;
}

FastRule MakeFastRule(const dwarf::Row& row, const dwarf::Cie& cie) {
  const uint16_t column = cie.return_address_register;
  if (column >= Cpu::kRegisters) return Only(FastKind::kBadCfi);
  if (row.registers[column].kind == RuleKind::kUndefined) return Only(FastKind::kOutermost);
  FastRule rule;
  const bool from_sp = row.cfa.reg == Cpu::kSp;
  const bool is_fast = column == Cpu::kLr && !cie.signal_frame && !row.cfa.is_expression &&
                       (from_sp || row.cfa.reg == Cpu::kFp) &&
                       Narrow(row.cfa.offset, rule.cfa_offset) && !row.registers[Cpu::kSp].stated &&
                       SetSaved(row.registers[Cpu::kLr], rule.ra, rule.ra_offset) &&
                       SetSaved(row.registers[Cpu::kFp], rule.fp, rule.fp_offset);
  if (!is_fast) return Only(FastKind::kFullRegisters);
  rule.kind = from_sp ? FastKind::kCfaFromSp : FastKind::kCfaFromFp;
  rule.is_signed = row.registers[dwarf::kAarch64RaSignState].offset != 0;
  return rule;
}

}  // namespace stackreel::unwind::aarch64
