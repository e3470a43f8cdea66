// Register numbers: perf's (arch/arm64 asm/perf_regs.h) and DWARF's (AADWARF64, section 4.1) are
// the same for x0-x30 and sp. The pc is perf's 32, and no DWARF register.
#pragma once

#include <cstdint>

namespace stackreel::unwind::aarch64 {

inline constexpr unsigned kPerfPc = 32;

struct Cpu {
  using Word = uint64_t;
  static constexpr unsigned kWordSize = 8;
  static constexpr uint16_t kFp = 29, kLr = 30, kSp = 31;
  static constexpr unsigned kRegisters = 32;
};

}  // namespace stackreel::unwind::aarch64
