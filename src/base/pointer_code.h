// Taking pointer authentication codes and tags out of arm64 addresses.
#pragma once

#include <cstdint>

namespace stackreel {

// Bit 55 says which half of the address space an address is of, and is never part of a code. Bits
// 63:56 are a tag (TBI, MTE) in user addresses, and part of the code in the kernel's
// (Documentation/arch/arm64/pointer-authentication.rst, tagged-pointers.rst).
//
//   63      56 55 54         VA              0
//   +---------+--+------------+---------------+
//   |   tag   |h |    code    |    address    |      insn_mask: the bits of "code"
//   +---------+--+------------+---------------+
inline constexpr uint64_t kUpperHalfBit = uint64_t{1} << 55;
inline constexpr uint64_t kTagByte = uint64_t{0xff} << 56;

// The address of an instruction without its code and tag. It is its own: strip as often as you
// like.
constexpr uint64_t StripCode(uint64_t address, uint64_t insn_mask) {
  const uint64_t bits = kTagByte | (insn_mask & ~kUpperHalfBit);
  return (address & kUpperHalfBit) != 0 ? address | bits : address & ~bits;
}

// The address of data without its tag. Stack and frame pointers carry no code.
constexpr uint64_t StripTag(uint64_t address) { return StripCode(address, 0); }

// The same on x86-64, where linear-address masking (LAM_U57) lets programs keep a tag in bits 62:57
// of user addresses.
constexpr uint64_t StripTagX86(uint64_t address) {
  constexpr uint64_t kTag = uint64_t{0x3f} << 57;
  return static_cast<int64_t>(address) < 0 ? address : address & ~kTag;
}

}  // namespace stackreel
