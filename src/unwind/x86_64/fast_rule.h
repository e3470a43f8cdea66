// How most frames of x86 code are left: a rule that needs pc, sp and fp (rbp) only, in 16 bytes.
#pragma once

#include <cstdint>

#include "dwarf/cfi.h"
#include "unwind/x86_64/code_scan.h"

namespace stackreel::unwind::x86_64 {

enum class FastKind : uint8_t {
  // These find a CFA; then pc = [cfa + ra_offset], sp = cfa.
  kCfaFromSp,  // sp + cfa_offset
  kCfaFromFp,  // fp + cfa_offset
  kCfaAtSp,    // [sp + cfa_offset] + extra
  kCfaAtFp,    // [fp + cfa_offset] + extra
  kPlt,        // sp + word + (word if pc % 16 >= extra): a PLT entry pushes midway
  // A signal frame: sp = [sp + cfa_offset], pc = [sp + ra_offset], fp = [sp + fp_offset].
  kSignal,
  // Without CFI, as a scan of the code found: pc = [sp or (extra) fp + ra_offset], which is
  // checked.
  kScanned,
  // These end the fast path.
  kOutermost,      // no caller
  kFullRegisters,  // needs other registers or a general expression
  kNoCfi,          // no rule; the frame pointer may help
  kNoMapping,      // not in executable memory
  kBadCfi,
};

// The caller's frame pointer.
enum class FpKind : uint8_t {
  kSame,
  kAtCfa,  // [cfa + fp_offset]
  kAtFp,   // [fp + fp_offset]
  kAtSp,   // [sp + fp_offset]; of kScanned only
  kUnknown,
};

struct FastRule {
  int32_t cfa_offset = 0;
  int32_t ra_offset = 0;
  int32_t fp_offset = 0;
  int16_t extra = 0;
  FastKind kind = FastKind::kNoCfi;
  FpKind fp = FpKind::kSame;
  friend bool operator==(const FastRule&, const FastRule&) = default;
};
static_assert(sizeof(FastRule) == 16);

// A rule that says no more than its kind.
inline FastRule Only(FastKind kind) {
  FastRule rule;
  rule.kind = kind;
  return rule;
}

FastRule ScannedRule(const ScannedFrame& scanned);
ScannedFrame ScannedFrameOf(const FastRule& rule);

// The fast form of a row; kFullRegisters if it has none.
template <class Cpu>
FastRule MakeFastRule(const dwarf::Row& row, const dwarf::Cie& cie);

}  // namespace stackreel::unwind::x86_64
