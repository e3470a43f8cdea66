#include "x86/return_address.h"

#include <cstdint>
#include <optional>

#include "x86/instruction.h"

namespace stackreel::x86 {

namespace {

constexpr int kMostInstructions = 40;
constexpr int64_t kStackSlot = 8;
constexpr uint8_t kRsp = 4, kRbp = 5;
constexpr uint8_t kEscape = 0x0f, kVex2 = 0xc5, kVex3 = 0xc4, kEvex = 0x62;
// Where a register-direct operand stands in place of a memory operand.
constexpr uint8_t kDirect = 3;

// The bytes of an instruction, as Intel's SDM volume 2, chapter 2 has them.
struct Operands {
  uint8_t opcode = 0;
  bool is_escaped = false;  // its opcode is of another map than the first
  uint8_t rex = 0;
  uint8_t mod = kDirect, reg = 0, rm = 0;
  std::optional<uint8_t> base;  // of [base + displacement]; none for other forms
  int64_t displacement = 0;
  int64_t immediate = 0;  // of the groups 81 and 83
};

int64_t SignedAt(ByteView bytes, size_t at, size_t size) {
  if (at + size > bytes.size()) return 0;
  if (size == 1) return static_cast<int8_t>(bytes[at]);
  return LoadUnaligned<int32_t>(&bytes[at], Endian::kLittle);
}

// Where the VEX or EVEX prefix of an instruction begins, if it has one.
std::optional<size_t> VectorPrefix(ByteView bytes) {
  size_t at = 0;
  const auto is_legacy = [](uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xf2 || byte == 0xf3 || (byte & 0xe7) == 0x26 ||
           byte == 0x64 || byte == 0x65;
  };
  while (at < bytes.size() && is_legacy(bytes[at])) ++at;
  if (at == bytes.size()) return std::nullopt;
  const bool has_one = bytes[at] == kVex2 || bytes[at] == kVex3 || bytes[at] == kEvex;
  return has_one ? std::optional(at) : std::nullopt;
}

Operands OperandsOf(const Instruction& instruction, ByteView bytes) {
  Operands out;
  size_t at = instruction.opcode_offset;
  out.opcode = bytes[at];
  if (const auto prefix = VectorPrefix(bytes)) {
    out.is_escaped = true;
    // The displacement of EVEX counts in vectors: no word of that size is looked at.
    if (bytes[*prefix] == kEvex) return out;
    // R, X and B stand there inverted, in the upper bits.
    if (bytes[*prefix] == kVex3) out.rex = static_cast<uint8_t>(~bytes[*prefix + 1] >> 5 & 7);
  } else {
    // What maps of three bytes have is no more looked at than what those of two have.
    const bool is_long = at > 1 && bytes[at - 2] == kEscape;
    out.is_escaped = is_long || (at > 0 && bytes[at - 1] == kEscape);
    at -= is_long ? 2 : out.is_escaped ? 1 : 0;
    if (at > 0 && (bytes[at - 1] & 0xf0) == 0x40) out.rex = bytes[at - 1];
  }
  if (instruction.modrm_offset == 0) return out;
  const uint8_t modrm = bytes[instruction.modrm_offset];
  out.mod = modrm >> 6;
  out.reg = static_cast<uint8_t>((modrm >> 3 & 7) | ((out.rex & 4) != 0 ? 8 : 0));
  out.rm = static_cast<uint8_t>((modrm & 7) | ((out.rex & 1) != 0 ? 8 : 0));
  size_t next = size_t{instruction.modrm_offset} + 1;
  if (out.mod != kDirect) {
    std::optional<uint8_t> base = out.rm;
    if ((modrm & 7) == kRsp) {
      const uint8_t sib = bytes[next++];
      const bool no_index = (sib >> 3 & 7) == kRsp && (out.rex & 2) == 0;
      base.reset();
      if (no_index) base = static_cast<uint8_t>((sib & 7) | ((out.rex & 1) != 0 ? 8 : 0));
      if ((sib & 7) == kRbp && out.mod == 0) base.reset();  // no base at all
    } else if ((modrm & 7) == kRbp && out.mod == 0) {
      base.reset();  // rip
    }
    out.base = base;
    const size_t size = out.mod == 1 ? 1 : out.mod == 2 ? 4 : 0;
    if (size != 0) out.displacement = SignedAt(bytes, next, size);
    next += size;
  }
  if (!out.is_escaped && (out.opcode == 0x81 || out.opcode == 0x83)) {
    out.immediate = SignedAt(bytes, next, out.opcode == 0x83 ? 1 : 4);
  }
  return out;
}

// How far the return address lies above rsp and rbp, where that is known.
struct Frame {
  std::optional<int64_t> above_rsp = 0, above_rbp;

  void Push(int64_t bytes) {
    if (above_rsp) *above_rsp += bytes;
  }
  [[nodiscard]] bool Touches(const Operands& operands) const {
    if (operands.mod == kDirect || !operands.base) return false;
    if (*operands.base == kRsp) return above_rsp == operands.displacement;
    return *operands.base == kRbp && above_rbp == operands.displacement;
  }
  void Apply(const Operands& operands);

 private:
  void ApplyToRegisters(const Operands& operands);
};

void Frame::Apply(const Operands& operands) {
  const uint8_t opcode = operands.opcode;
  if (operands.is_escaped) return;  // none of these writes rsp or rbp in what compilers make
  const bool extended = (operands.rex & 1) != 0;
  if (opcode >= 0x50 && opcode < 0x58) {
    Push(kStackSlot);
  } else if (opcode >= 0x58 && opcode < 0x60) {
    Push(-kStackSlot);
    if (opcode == 0x58 + kRbp && !extended) above_rbp.reset();
    if (opcode == 0x58 + kRsp && !extended) above_rsp.reset();
  } else if (opcode == 0x68 || opcode == 0x6a || (opcode == 0xff && (operands.reg & 7) == 6)) {
    Push(kStackSlot);
  } else if (opcode == 0x9c || opcode == 0x9d) {  // pushf, popf
    Push(opcode == 0x9c ? kStackSlot : -kStackSlot);
  } else if (opcode == 0xc8 || opcode == 0xc9) {  // enter, leave
    above_rsp.reset();
    above_rbp.reset();
  } else {
    ApplyToRegisters(operands);
  }
}

// Of an instruction with an operand that may be a register.
void Frame::ApplyToRegisters(const Operands& operands) {
  const uint8_t opcode = operands.opcode;
  const bool is_direct = operands.mod == kDirect;
  if ((opcode == 0x81 || opcode == 0x83) && is_direct && operands.rm == kRsp) {
    constexpr uint8_t kAdd = 0, kSub = 5, kCompare = 7;
    if (operands.reg == kSub) return Push(operands.immediate);
    if (operands.reg == kAdd) return Push(-operands.immediate);
    if (operands.reg != kCompare) above_rsp.reset();
    return;
  }
  const bool moves_rsp_to_rbp =
      is_direct && ((opcode == 0x89 && operands.reg == kRsp && operands.rm == kRbp) ||
                    (opcode == 0x8b && operands.reg == kRbp && operands.rm == kRsp));
  if (moves_rsp_to_rbp) {
    above_rbp = above_rsp;
    return;
  }
  if (opcode == 0x8d && operands.reg == kRsp) {
    if (operands.base == kRsp) return Push(-operands.displacement);
    above_rsp.reset();
    return;
  }
  // A register that is written: by `op r/m, r`, or by `op r, r/m`.
  const bool is_arithmetic = opcode < 0x38 && (opcode & 4) == 0;
  std::optional<uint8_t> written;
  if (opcode == 0x89 || (is_arithmetic && (opcode & 2) == 0)) {
    if (is_direct) written = operands.rm;
  } else if (opcode == 0x8b || opcode == 0x8d || opcode == 0x63 ||
             (is_arithmetic && (opcode & 2) != 0)) {
    written = operands.reg;
  } else if (opcode == 0x81 || opcode == 0x83 || opcode == 0x87 || opcode >= 0xc0) {
    if (is_direct) written = operands.rm;
  } else if (opcode >= 0xb8 && opcode < 0xc0) {
    written = static_cast<uint8_t>((opcode & 7) | ((operands.rex & 1) != 0 ? 8 : 0));
  }
  if (written == kRsp) above_rsp.reset();
  if (written == kRbp) above_rbp.reset();
}

}  // namespace

bool TouchesReturnAddress(ByteView code) {
  Frame frame;
  for (int i = 0; i < kMostInstructions && !code.empty(); ++i) {
    const std::optional<Instruction> instruction = Decode(code);
    if (!instruction) return false;
    switch (instruction->flow) {
      case Flow::kNext:
        break;
      case Flow::kConditionalJump:
      case Flow::kCall:
      case Flow::kIndirectCall:
        code = code.subspan(instruction->length);
        continue;
      case Flow::kJump:
      case Flow::kIndirectJump:
      case Flow::kReturn:
      case Flow::kStop:
        return false;
    }
    if (!instruction->is_nop) {
      const Operands operands = OperandsOf(*instruction, code.first(instruction->length));
      if (frame.Touches(operands)) return true;
      frame.Apply(operands);
    }
    code = code.subspan(instruction->length);
  }
  return false;
}

}  // namespace stackreel::x86
