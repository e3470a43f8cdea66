#include "unwind/x86_64/fast_rule.h"

#include <array>
#include <limits>
#include <optional>

#include "base/byte_reader.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind::x86_64 {
namespace {

using dwarf::RegisterRule;
using dwarf::RuleKind;

constexpr uint8_t kOpDeref = 0x06, kOpPlusUconst = 0x23, kOpLit0 = 0x30, kOpBreg0 = 0x70;

template <typename To>
std::optional<To> Narrow(int64_t value) {
  if (value < std::numeric_limits<To>::min() || value > std::numeric_limits<To>::max()) {
    return std::nullopt;
  }
  return static_cast<To>(value);
}

// bregN offset [deref [plus_uconst extra]]
struct SimpleExpression {
  unsigned reg = 0;
  int32_t offset = 0;
  bool dereferences = false;
  int16_t extra = 0;
};
std::optional<SimpleExpression> ParseSimple(ByteView bytes) {
  ByteReader reader(bytes);
  const uint8_t op = reader.U8();
  if (op < kOpBreg0 || op >= kOpBreg0 + 32) return std::nullopt;
  SimpleExpression simple;
  simple.reg = op - kOpBreg0;
  const auto offset = Narrow<int32_t>(reader.Sleb128());
  if (!reader.ok() || !offset) return std::nullopt;
  simple.offset = *offset;
  if (reader.AtEnd()) return simple;
  if (reader.U8() != kOpDeref) return std::nullopt;
  simple.dereferences = true;
  if (reader.AtEnd()) return simple;
  if (reader.U8() != kOpPlusUconst) return std::nullopt;
  const uint64_t extra = reader.Uleb128();
  if (!reader.ok() || !reader.AtEnd() || extra > INT16_MAX) return std::nullopt;
  simple.extra = static_cast<int16_t>(extra);
  return simple;
}

// The number N in the expression linkers write for a PLT:
// breg(sp) word; breg(ip) 0; lit15; and; litN; ge; lit(log2 word); shl; plus.
template <class Cpu>
std::optional<int16_t> ParsePlt(ByteView bytes) {
  constexpr uint8_t kLog2 = Cpu::kWordSize == 8 ? 3 : 2;
  constexpr std::array<uint8_t, 11> kPattern = {kOpBreg0 + Cpu::kSp,
                                                Cpu::kWordSize,
                                                kOpBreg0 + Cpu::kIp,
                                                0x00,
                                                kOpLit0 + 15,
                                                0x1a,
                                                0x00,
                                                0x2a,
                                                kOpLit0 + kLog2,
                                                0x24,
                                                0x22};
  constexpr size_t kNumber = 6;
  if (bytes.size() != kPattern.size()) return std::nullopt;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i != kNumber && bytes[i] != kPattern[i]) return std::nullopt;
  }
  if (bytes[kNumber] < kOpLit0 || bytes[kNumber] > kOpLit0 + 31) return std::nullopt;
  return static_cast<int16_t>(bytes[kNumber] - kOpLit0);
}

// sp, ip and (where it says so) fp saved at places relative to the trampoline's sp. The rows of
// glibc's __restore_rt and the kernel's vDSO say: CFA = [sp + n], register r at expression sp + m.
template <class Cpu>
std::optional<FastRule> MakeSignalRule(const dwarf::Row& row) {
  if (!row.cfa.is_expression) return std::nullopt;
  const auto cfa = ParseSimple(row.cfa.expression);
  if (!cfa || cfa->reg != Cpu::kSp || !cfa->dereferences || cfa->extra != 0) return std::nullopt;
  const auto saved_at = [&](uint16_t reg) -> std::optional<int32_t> {
    const RegisterRule& rule = row.registers[reg];
    if (rule.kind != RuleKind::kExpression) return std::nullopt;
    const auto place = ParseSimple(rule.expression);
    if (!place || place->reg != Cpu::kSp || place->dereferences) return std::nullopt;
    return place->offset;
  };
  const auto ra = saved_at(Cpu::kIp);
  const auto fp = saved_at(Cpu::kBp);
  if (!ra || !fp) return std::nullopt;
  const RegisterRule& sp = row.registers[Cpu::kSp];
  if (sp.stated && saved_at(Cpu::kSp) != cfa->offset) return std::nullopt;
  FastRule rule = Only(FastKind::kSignal);
  rule.cfa_offset = cfa->offset;
  rule.ra_offset = *ra;
  rule.fp_offset = *fp;
  return rule;
}

template <class Cpu>
bool SetCfa(const dwarf::CfaRule& cfa, FastRule& rule) {
  if (!cfa.is_expression) {
    const auto offset = Narrow<int32_t>(cfa.offset);
    if (!offset || (cfa.reg != Cpu::kSp && cfa.reg != Cpu::kBp)) return false;
    rule.kind = cfa.reg == Cpu::kSp ? FastKind::kCfaFromSp : FastKind::kCfaFromFp;
    rule.cfa_offset = *offset;
    return true;
  }
  if (const auto n = ParsePlt<Cpu>(cfa.expression)) {
    rule.kind = FastKind::kPlt;
    rule.extra = *n;
    return true;
  }
  const auto simple = ParseSimple(cfa.expression);
  if (!simple || (simple->reg != Cpu::kSp && simple->reg != Cpu::kBp)) return false;
  const bool from_sp = simple->reg == Cpu::kSp;
  if (simple->dereferences) {
    rule.kind = from_sp ? FastKind::kCfaAtSp : FastKind::kCfaAtFp;
  } else {
    rule.kind = from_sp ? FastKind::kCfaFromSp : FastKind::kCfaFromFp;
  }
  rule.cfa_offset = simple->offset;
  rule.extra = simple->extra;
  return true;
}

template <class Cpu>
bool SetFp(const RegisterRule& saved, FastRule& rule) {
  switch (saved.kind) {
    case RuleKind::kSameValue:
      rule.fp = FpKind::kSame;
      return true;
    case RuleKind::kUndefined:
      rule.fp = FpKind::kUnknown;
      return true;
    case RuleKind::kOffset: {
      const auto offset = Narrow<int32_t>(saved.offset);
      rule.fp = FpKind::kAtCfa;
      rule.fp_offset = offset.value_or(0);
      return offset.has_value();
    }
    case RuleKind::kExpression: {
      const auto place = ParseSimple(saved.expression);
      if (!place || place->reg != Cpu::kBp || place->dereferences) return false;
      rule.fp = FpKind::kAtFp;
      rule.fp_offset = place->offset;
      return true;
    }
    default:
      return false;
  }
}

}  // namespace

FastRule ScannedRule(const ScannedFrame& scanned) {
  FastRule rule = Only(FastKind::kScanned);
  rule.ra_offset = scanned.return_address.offset;
  rule.extra = scanned.return_address.from_fp ? 1 : 0;
  if (scanned.saved_fp) {
    rule.fp = scanned.saved_fp->from_fp ? FpKind::kAtFp : FpKind::kAtSp;
    rule.fp_offset = scanned.saved_fp->offset;
  }
  return rule;
}

ScannedFrame ScannedFrameOf(const FastRule& rule) {
  ScannedFrame scanned;
  scanned.return_address = {rule.extra != 0, rule.ra_offset};
  if (rule.fp != FpKind::kSame)
    scanned.saved_fp = StackPlace{rule.fp == FpKind::kAtFp, rule.fp_offset};
  return scanned;
}

template <class Cpu>
FastRule MakeFastRule(const dwarf::Row& row, const dwarf::Cie& cie) {
  if (cie.return_address_register != Cpu::kIp) return Only(FastKind::kBadCfi);
  const RegisterRule& ra = row.registers[Cpu::kIp];
  if (ra.kind == RuleKind::kUndefined) return Only(FastKind::kOutermost);
  if (cie.signal_frame) {
    return MakeSignalRule<Cpu>(row).value_or(Only(FastKind::kFullRegisters));
  }
  FastRule rule;
  const auto ra_offset = Narrow<int32_t>(ra.offset);
  const bool is_fast = ra.kind == RuleKind::kOffset && ra_offset &&
                       !row.registers[Cpu::kSp].stated && SetCfa<Cpu>(row.cfa, rule) &&
                       SetFp<Cpu>(row.registers[Cpu::kBp], rule);
  if (!is_fast) return Only(FastKind::kFullRegisters);
  rule.ra_offset = *ra_offset;
  return rule;
}

template FastRule MakeFastRule<Cpu64>(const dwarf::Row&, const dwarf::Cie&);
template FastRule MakeFastRule<Cpu32>(const dwarf::Row&, const dwarf::Cie&);

}  // namespace stackreel::unwind::x86_64
