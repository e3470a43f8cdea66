// How most frames of arm64 code are left: a rule that needs pc, sp, x29 and lr only, in 16 bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "dwarf/cfi.h"
#include "unwind/aarch64/code_scan.h"

namespace stackreel::unwind::aarch64 {

enum class FastKind : uint8_t {
  kCfaFromSp,    // cfa = sp + cfa_offset
  kCfaFromFp,    // cfa = x29 + cfa_offset
  kSignal,       // the kernel's signal frame at sp
  kUnknownCode,  // executable memory without a file: a signal frame, or as kNoCfi
  // These end the fast path.
  kOutermost,      // no caller
  kFullRegisters,  // needs other registers or an expression
  kNoCfi,          // no rule; the link register or x29 may help
  kNoMapping,      // not in executable memory
  kBadCfi,
};

// Where the caller's pc or x29 is.
enum class SavedAt : uint8_t {
  kRegister,  // lr (for the pc), x29
  kCfa,       // [cfa + offset]
  kNowhere,   // x29 only
};

// RA_SIGN_STATE, the pseudo-register 34 (AADWARF64, 4.1 note 10), is carried as a check: addresses
// are always stripped.
struct FastRule {
  int32_t cfa_offset = 0;
  int32_t ra_offset = 0;
  int32_t fp_offset = 0;
  FastKind kind = FastKind::kNoCfi;
  SavedAt ra = SavedAt::kRegister;
  SavedAt fp = SavedAt::kRegister;
  bool is_signed : 1 = false;   // CFI says that the return address is signed here
  bool is_guessed : 1 = false;  // by a scan of the code: the return address must be seen to be one
  uint8_t unused : 6 = 0;
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

// A row that keeps the return address at or above the CFA, in the caller's own frame, has its CFA
// too low: glibc's _dl_runtime_resolve says "lr at CFA + 8", since the PLT has pushed 16 bytes
// before it that its CFI does not count. Gives the row with a CFA above the return address (16
// bytes aligned, AAPCS64 6.4.5.1), or nothing if the row is as it should be.
std::optional<dwarf::Row> WithCfaAboveReturnAddress(const dwarf::Row& row, const dwarf::Cie& cie);

// The fast form of a row; kFullRegisters if it has none.
FastRule MakeFastRule(const dwarf::Row& row, const dwarf::Cie& cie);

}  // namespace stackreel::unwind::aarch64
