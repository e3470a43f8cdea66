// How long instructions are, and what their opcode is: a table and nothing more, for whole modules.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace stackreel::x86 {

// Which table of opcodes an opcode is of. VEX, EVEX and XOP instructions are of no interest but for
// their length and their rip-relative operand.
enum class OpcodeMap : uint8_t { kOneByte, k0f, k0f38, k0f3a, kVector };

struct InstructionShape {
  uint8_t length = 0;  // 0: no instruction of 64-bit mode begins so, or it is not whole
  OpcodeMap map = OpcodeMap::kOneByte;
  uint8_t opcode = 0;
  uint8_t modrm = 0;         // 0 if there is none; see modrm_offset
  uint8_t modrm_offset = 0;  // 0: none
};

// The first instruction of `bytes`. Wherever Decode (instruction.h) finds an instruction, this
// gives its length, at about a tenth of the time; but it also gives a length to bytes that only
// look like an instruction (reserved opcodes, impossible operands).
InstructionShape ReadShape(ByteView bytes);

}  // namespace stackreel::x86
