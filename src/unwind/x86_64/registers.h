// Register numbers: perf's (asm/perf_regs.h, one set for 32 and 64 bit) and DWARF's (System V ABI,
// AMD64 3.6.2 figure 3.36; i386 2.4 table 2.14).
#pragma once

#include <cstdint>

namespace stackreel::unwind::x86_64 {

inline constexpr unsigned kPerfAx = 0, kPerfBx = 1, kPerfCx = 2, kPerfDx = 3, kPerfSi = 4,
                          kPerfDi = 5, kPerfBp = 6, kPerfSp = 7, kPerfIp = 8, kPerfR8 = 16;

// A 64-bit task.
struct Cpu64 {
  using Word = uint64_t;
  static constexpr unsigned kWordSize = 8;
  static constexpr uint16_t kBp = 6, kSp = 7, kIp = 16;
  static constexpr unsigned kRegisters = 17;
  // perf's number of each DWARF register.
  static constexpr uint8_t kPerfOfDwarf[kRegisters] = {
      kPerfAx,     kPerfDx,     kPerfCx,     kPerfBx,     kPerfSi,     kPerfDi,
      kPerfBp,     kPerfSp,     kPerfR8,     kPerfR8 + 1, kPerfR8 + 2, kPerfR8 + 3,
      kPerfR8 + 4, kPerfR8 + 5, kPerfR8 + 6, kPerfR8 + 7, kPerfIp};
};

// A 32-bit task.
struct Cpu32 {
  using Word = uint32_t;
  static constexpr unsigned kWordSize = 4;
  static constexpr uint16_t kBp = 5, kSp = 4, kIp = 8;
  static constexpr unsigned kRegisters = 9;
  static constexpr uint8_t kPerfOfDwarf[kRegisters] = {kPerfAx, kPerfCx, kPerfDx, kPerfBx, kPerfSp,
                                                       kPerfBp, kPerfSi, kPerfDi, kPerfIp};
};

}  // namespace stackreel::unwind::x86_64
