#include "x86/instruction_length.h"

#include <array>
#include <initializer_list>

#include "x86/instruction.h"

namespace stackreel::x86 {
namespace {

// What follows an opcode (Intel SDM volume 2, appendix A; AMD APM volume 3, appendix A).
enum Trait : uint8_t {
  kModrm = 1,
  kImm8 = 2,
  kImm16 = 4,
  kImmZ = 8,       // 2 bytes with an operand-size prefix, else 4
  kImm32 = 16,     // 4 bytes always: near branches
  kGroup3 = 32,    // an immediate only where modrm's reg is 0 or 1 (test)
  kInvalid = 64,   // in 64-bit mode
  kSpecial = 128,  // handled apart
};
using Traits = std::array<uint8_t, 256>;

constexpr void Set(Traits& traits, int first, int last, int value) {
  for (int i = first; i <= last; ++i) traits[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
}
constexpr void Set(Traits& traits, std::initializer_list<int> opcodes, int value) {
  for (const int opcode : opcodes) Set(traits, opcode, opcode, value);
}

constexpr Traits MakeOneByteTraits() {
  Traits traits = {};
  for (int row = 0; row < 0x40; row += 8) {  // the eight arithmetic operations
    Set(traits, row, row + 3, kModrm);
    Set(traits, {row + 4}, kImm8);
    Set(traits, {row + 5}, kImmZ);
    Set(traits, row + 6, row + 7, kInvalid);  // escapes and prefixes never get here
  }
  Set(traits, {0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd5, 0xd6, 0xea}, kInvalid);
  Set(traits, {0x63}, kModrm);
  Set(traits, {0x68, 0xa9}, kImmZ);
  Set(traits, {0x69, 0x81, 0xc7}, kModrm | kImmZ);
  Set(traits, {0x6a, 0xa8, 0xcd, 0xeb}, kImm8);
  Set(traits, {0x6b, 0x80, 0x83, 0xc0, 0xc1, 0xc6}, kModrm | kImm8);
  Set(traits, 0x70, 0x7f, kImm8);
  Set(traits, 0x84, 0x8f, kModrm);
  Set(traits, 0xa0, 0xa3, kSpecial);  // an address of 8 bytes, or 4
  Set(traits, 0xb0, 0xb7, kImm8);
  Set(traits, 0xb8, 0xbf, kSpecial);  // 8 bytes with REX.W
  Set(traits, {0xc2, 0xca}, kImm16);
  Set(traits, {0xc8}, kImm16 | kImm8);
  Set(traits, 0xd0, 0xd3, kModrm);
  Set(traits, 0xd8, 0xdf, kModrm);
  Set(traits, 0xe0, 0xe7, kImm8);
  Set(traits, 0xe8, 0xe9, kImm32);
  Set(traits, {0xf6}, kModrm | kImm8 | kGroup3);
  Set(traits, {0xf7}, kModrm | kImmZ | kGroup3);
  Set(traits, {0xfe, 0xff}, kModrm);
  return traits;
}

constexpr Traits Make0fTraits() {
  Traits traits = {};
  Set(traits, 0x00, 0xff, kModrm);
  Set(traits, 0x05, 0x0b, 0);
  Set(traits, {0x04, 0x0a, 0x0c, 0x24, 0x25, 0x26, 0x27, 0x36, 0x39, 0x7a, 0x7b}, kInvalid);
  Set(traits, 0x3b, 0x3f, kInvalid);
  Set(traits, {0x0e, 0x37, 0x77, 0xa0, 0xa1, 0xa2, 0xa8, 0xa9, 0xaa}, 0);
  Set(traits, 0x30, 0x35, 0);
  Set(traits, {0x0f, 0xa4, 0xac, 0xba, 0xc2, 0xc4, 0xc5, 0xc6}, kModrm | kImm8);
  Set(traits, 0x20, 0x23, kModrm | kSpecial);  // control and debug registers: mod is ignored
  Set(traits, 0x70, 0x73, kModrm | kImm8);
  Set(traits, {0x78}, kModrm | kSpecial);  // extrq, insertq: two bytes more
  Set(traits, 0x80, 0x8f, kImm32);
  Set(traits, 0xc8, 0xcf, 0);
  return traits;
}

constexpr Traits kOneByteTraits = MakeOneByteTraits();
constexpr Traits k0fTraits = Make0fTraits();

class ShapeReader {
 public:
  explicit ShapeReader(ByteView bytes) : bytes_(bytes) {}

  InstructionShape Read() {
    if (!ReadPrefixes()) return {};
    const uint8_t first = Next();
    uint8_t traits = 0;
    switch (first) {
      case 0x0f:
        traits = ReadEscaped();
        break;
      case 0xc4:
      case 0xc5:
      case 0x62:
        traits = ReadVector(first);
        break;
      case 0x8f:
        // XOP where the field that would be modrm's reg and more names a map of 8 and above.
        if ((Peek() & 0x1f) >= 8) {
          traits = ReadVector(first);
          break;
        }
        [[fallthrough]];
      default:
        shape_.opcode = first;
        traits = kOneByteTraits[first];
    }
    if ((traits & kInvalid) != 0) return {};
    if ((traits & kModrm) != 0) ReadModrm((traits & kSpecial) != 0);
    at_ += ImmediateSize(traits);
    if (at_ > bytes_.size() || at_ > kMaxInstructionLength) return {};
    shape_.length = static_cast<uint8_t>(at_);
    return shape_;
  }

 private:
  // Reads 0 past the end; the length is checked last.
  uint8_t Peek() const { return at_ < bytes_.size() ? bytes_[at_] : 0; }
  uint8_t Next() {
    const uint8_t byte = Peek();
    ++at_;
    return byte;
  }

  // Legacy prefixes and then a REX, which counts only right before the opcode.
  bool ReadPrefixes() {
    while (at_ < bytes_.size() && at_ < kMaxInstructionLength) {
      const uint8_t byte = bytes_[at_];
      if ((byte & 0xf0) == 0x40) {
        rex_w_ = (byte & 8) != 0;
      } else {
        switch (byte) {
          case 0x66:
            operand_size_ = true;
            break;
          case 0x67:
            address_size_ = true;
            break;
          case 0xf2:
          case 0xf3:
            repeat_ = byte;
            break;
          case 0x26:
          case 0x2e:
          case 0x36:
          case 0x3e:
          case 0x64:
          case 0x65:
          case 0xf0:
            break;
          default:
            return true;
        }
        rex_w_ = false;
      }
      ++at_;
    }
    return false;
  }

  uint8_t ReadEscaped() {
    shape_.opcode = Next();
    switch (shape_.opcode) {
      case 0x38:
        shape_.map = OpcodeMap::k0f38;
        shape_.opcode = Next();
        return kModrm;
      case 0x3a:
        shape_.map = OpcodeMap::k0f3a;
        shape_.opcode = Next();
        return kModrm | kImm8;
      default:
        shape_.map = OpcodeMap::k0f;
        return k0fTraits[shape_.opcode];
    }
  }

  uint8_t ReadVector(uint8_t first) {
    shape_.map = OpcodeMap::kVector;
    int map = 1;
    if (first != 0xc5) map = Peek() & (first == 0x62 ? 0x07 : 0x1f);
    at_ += first == 0xc5 ? 1 : first == 0x62 ? 3 : 2;
    const uint8_t opcode = shape_.opcode = Next();
    switch (map) {
      case 1:
        if (opcode == 0x77 && first != 0x62) return 0;  // vzeroupper
        return (opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
                       (opcode >= 0xc4 && opcode <= 0xc6)
                   ? kModrm | kImm8
                   : kModrm;
      case 3:
      case 8:
        return kModrm | kImm8;
      case 10:
        return kModrm | kImm32;
      default:
        return kModrm;
    }
  }

  void ReadModrm(bool special) {
    shape_.modrm_offset = static_cast<uint8_t>(at_);
    const uint8_t modrm = shape_.modrm = Next();
    const bool is_0f = shape_.map == OpcodeMap::k0f;
    if (special && is_0f && shape_.opcode < 0x24) return;
    if (special && is_0f && (operand_size_ || repeat_ == 0xf2)) at_ += 2;
    const int mod = modrm >> 6;
    if (mod == 3) return;
    const int rm = modrm & 7;
    bool no_base = mod == 0 && rm == 5;
    if (rm == 4) {
      const uint8_t sib = Next();
      no_base = mod == 0 && (sib & 7) == 5;
    }
    if (mod == 1) {
      at_ += 1;
    } else if (mod == 2 || no_base) {
      at_ += 4;
    }
  }

  size_t ImmediateSize(uint8_t traits) const {
    if (shape_.map == OpcodeMap::kOneByte && traits == kSpecial) {
      if (shape_.opcode >= 0xb8) return rex_w_ ? 8 : operand_size_ ? 2 : 4;
      return address_size_ ? 4 : 8;
    }
    if ((traits & kGroup3) != 0 && (shape_.modrm & 0x30) != 0) return 0;
    size_t size = 0;
    if ((traits & kImm8) != 0) size += 1;
    if ((traits & kImm16) != 0) size += 2;
    if ((traits & kImm32) != 0) size += 4;
    if ((traits & kImmZ) != 0) size += operand_size_ && !rex_w_ ? 2 : 4;
    return size;
  }

  ByteView bytes_;
  size_t at_ = 0;
  InstructionShape shape_;
  bool operand_size_ = false;
  bool address_size_ = false;
  bool rex_w_ = false;
  uint8_t repeat_ = 0;
};

}  // namespace

InstructionShape ReadShape(ByteView bytes) { return ShapeReader(bytes).Read(); }

}  // namespace stackreel::x86
