// What arm64 code tells where there is no call-frame information. Instructions are 4 bytes, little
// end first, whatever the order of data.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace stackreel::unwind::aarch64 {

inline constexpr size_t kInstructionSize = 4;

inline uint32_t InstructionAt(ByteView code, size_t at) {
  return LoadUnaligned<uint32_t>(code.data() + at, Endian::kLittle);
}

// BL, BLR, BLRAA, BLRAB, BLRAAZ, BLRABZ (Arm ARM, C4.1.66).
constexpr bool IsCall(uint32_t instruction) {
  return (instruction & 0xfc000000) == 0x94000000 || (instruction & 0xfffffc1f) == 0xd63f0000 ||
         (instruction & 0xfffff800) == 0xd73f0800 || (instruction & 0xfffff81f) == 0xd63f081f;
}

// Whether a call ends where `before` ends (`before` is code in front of a return address). True for
// too few bytes to say.
inline bool IsAfterCall(ByteView before) {
  if (before.size() < kInstructionSize) return true;
  return IsCall(InstructionAt(before, before.size() - kInstructionSize));
}

}  // namespace stackreel::unwind::aarch64
