#include "x86/instruction.h"

#include <Zydis/Zydis.h>

namespace stackreel::x86 {
namespace {

const ZydisDecoder& Decoder64() {
  static const ZydisDecoder kDecoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  return kDecoder;
}

// Of that coprocessor (the first Xeon Phi) only. Its conditional jumps have VEX opcodes.
bool IsOfKnightsCorner(const ZydisDecodedInstruction& decoded) {
  switch (decoded.meta.isa_set) {
    case ZYDIS_ISA_SET_KNCE:
    case ZYDIS_ISA_SET_KNCJKBR:
    case ZYDIS_ISA_SET_KNCSTREAM:
    case ZYDIS_ISA_SET_KNCV:
    case ZYDIS_ISA_SET_KNC_MISC:
    case ZYDIS_ISA_SET_KNC_PF_HINT:
      return true;
    default:
      return false;
  }
}

// The field of a direct branch, which is its first immediate.
bool HasRelativeImmediate(const ZydisDecodedInstruction& decoded) {
  return decoded.raw.imm[0].size != 0 && decoded.raw.imm[0].is_relative != 0;
}

Flow FlowOf(const ZydisDecodedInstruction& decoded) {
  const bool direct = HasRelativeImmediate(decoded);
  switch (decoded.mnemonic) {
    case ZYDIS_MNEMONIC_JMP:
      return direct ? Flow::kJump : Flow::kIndirectJump;
    case ZYDIS_MNEMONIC_CALL:
      return direct ? Flow::kCall : Flow::kIndirectCall;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_UIRET:
      return Flow::kReturn;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_INT1:
    case ZYDIS_MNEMONIC_INT3:
    case ZYDIS_MNEMONIC_HLT:
      return Flow::kStop;
    default:
      return direct ? Flow::kConditionalJump : Flow::kNext;
  }
}

bool IsLoop(ZydisMnemonic mnemonic) {
  return mnemonic == ZYDIS_MNEMONIC_JRCXZ || mnemonic == ZYDIS_MNEMONIC_JECXZ ||
         mnemonic == ZYDIS_MNEMONIC_LOOP || mnemonic == ZYDIS_MNEMONIC_LOOPE ||
         mnemonic == ZYDIS_MNEMONIC_LOOPNE;
}

// An operand-size prefix that a REX.W does not override.
bool HasOperandSizePrefix(const ZydisDecodedInstruction& decoded) {
  if ((decoded.attributes & ZYDIS_ATTRIB_HAS_REX) != 0 && decoded.raw.rex.W != 0) return false;
  for (size_t i = 0; i < decoded.raw.prefix_count; ++i) {
    if (decoded.raw.prefixes[i].value == 0x66) return true;
  }
  return false;
}

// Modrm says rip-relative (mod 0, rm 5), and there is a displacement: moves from and to control
// registers ignore mod.
bool IsRipRelative(const ZydisDecodedInstruction& decoded) {
  return (decoded.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && decoded.raw.modrm.mod == 0 &&
         decoded.raw.modrm.rm == 5 && decoded.raw.disp.size == 32;
}

// Opcodes are what follows prefixes and escapes; the byte itself is in `opcode`. Before modrm, or
// before what follows it where there is none, stands the opcode.
uint8_t OpcodeOffset(const ZydisDecodedInstruction& decoded) {
  const auto& raw = decoded.raw;
  if ((decoded.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0) return raw.modrm.offset - 1;
  if (raw.disp.size != 0) return raw.disp.offset - 1;
  if (raw.imm[0].size != 0) return raw.imm[0].offset - 1;
  return decoded.length - 1;
}

}  // namespace

std::optional<Instruction> Decode(ByteView bytes) {
  ZydisDecoderContext state;
  ZydisDecodedInstruction decoded;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&Decoder64(), &state, bytes.data(), bytes.size(),
                                                  &decoded))) {
    return std::nullopt;
  }
  if (IsOfKnightsCorner(decoded)) return std::nullopt;
  Instruction result;
  result.length = decoded.length;
  result.flow = FlowOf(decoded);
  const auto& imm = decoded.raw.imm[0];
  if (HasRelativeImmediate(decoded)) {
    result.branch = {imm.offset, static_cast<uint8_t>(imm.size / 8),
                     static_cast<int32_t>(imm.value.s)};
    result.is_cut_on_amd =
        decoded.mnemonic != ZYDIS_MNEMONIC_XBEGIN && HasOperandSizePrefix(decoded);
  }
  if (IsRipRelative(decoded)) {
    result.memory = {decoded.raw.disp.offset, 4, static_cast<int32_t>(decoded.raw.disp.value)};
    result.wraps_at_4gib = decoded.address_width == 32;
  }
  result.is_lea = decoded.mnemonic == ZYDIS_MNEMONIC_LEA;
  result.is_nop = decoded.mnemonic == ZYDIS_MNEMONIC_NOP;
  result.is_endbr64 = decoded.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
  result.is_loop = IsLoop(decoded.mnemonic);
  result.is_far = decoded.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  result.is_syscall = decoded.mnemonic == ZYDIS_MNEMONIC_SYSCALL;
  result.opcode_offset = OpcodeOffset(decoded);
  if ((decoded.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0) {
    result.modrm_offset = decoded.raw.modrm.offset;
  }
  return result;
}

}  // namespace stackreel::x86
