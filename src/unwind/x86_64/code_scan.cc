#include "unwind/x86_64/code_scan.h"

#include "base/byte_reader.h"

namespace stackreel::unwind::x86_64 {
namespace {

constexpr unsigned kMaxInstructions = 128;
constexpr unsigned kSp = 4, kFp = 5;  // as ModRM has them

// What sp or fp holds: a place, or something not followed.
using Value = std::optional<StackPlace>;

// The bytes of ModRM, with REX's extensions.
struct ModRm {
  unsigned mod = 0, reg = 0, rm = 0;
  bool rm_is_register() const { return mod == 3; }
};

class Scanner {
 public:
  Scanner(ByteView code, size_t start, unsigned word_size)
      : reader_(code), word_size_(static_cast<int32_t>(word_size)) {
    reader_.Seek(start);
  }

  std::optional<ScannedFrame> Run() {
    for (unsigned n = 0; n < kMaxInstructions; ++n) {
      const Step step = Next();
      if (!reader_.ok() || step == Step::kUnknown) return std::nullopt;
      if (step == Step::kReturn) {
        if (!sp_ || fp_is_lost_) return std::nullopt;
        return ScannedFrame{*sp_, saved_fp_};
      }
    }
    return std::nullopt;
  }

 private:
  enum class Step { kGoOn, kReturn, kUnknown };

  bool Is64() const { return word_size_ == 8; }
  // Nothing where that is further away than any stack reaches.
  static Value Moved(Value value, int64_t by) {
    if (!value) return value;
    const int64_t offset = value->offset + by;
    if (offset != static_cast<int32_t>(offset)) return std::nullopt;
    value->offset = static_cast<int32_t>(offset);
    return value;
  }
  void MoveSp(int64_t by) { sp_ = Moved(sp_, by); }

  Step Next();
  Step OneByte(uint8_t op);
  Step Rare(uint8_t op);
  Step TwoByte();
  Step Group(uint8_t op);
  Step Push() {
    MoveSp(-word_size_);
    return Step::kGoOn;
  }
  Step Pop(unsigned reg) {
    if (reg == kSp) return Step::kUnknown;
    if (reg == kFp) RestoreFp(sp_);
    MoveSp(word_size_);
    return Step::kGoOn;
  }
  // fp is loaded from the stack: the caller's, if it is to be so at the return.
  void RestoreFp(const Value& place) {
    fp_ = std::nullopt;
    fp_is_lost_ = !place;
    // What this function itself pushed is where it was: the register's value now.
    const bool pushed_here = pushed_fp_ && pushed_fp_ == place;
    saved_fp_ = pushed_here ? std::nullopt : place;
  }
  void SetFp(const Value& value) {
    fp_ = value;
    fp_is_lost_ = true;  // until it is restored
  }
  Step Leave() {
    sp_ = fp_;
    return sp_ ? Pop(kFp) : Step::kUnknown;
  }
  Step Jump(int64_t distance) {
    if (distance < 0 && static_cast<uint64_t>(-distance) > reader_.offset()) return Step::kUnknown;
    reader_.Seek(reader_.offset() + static_cast<uint64_t>(distance));
    return Step::kGoOn;
  }
  Step Skip(uint64_t bytes) {
    reader_.Skip(bytes);
    return Step::kGoOn;
  }

  // Reads ModRM with what follows it; `displacement_` and `base_` are set for memory operands.
  ModRm ReadModRm();
  // The general effect of an instruction on registers: those it may write are no longer known.
  void Clobber(unsigned reg) {
    if (reg == kSp) sp_ = std::nullopt;
    if (reg == kFp) SetFp(std::nullopt);
  }
  void Clobber(const ModRm& modrm) {
    Clobber(modrm.reg);
    if (modrm.rm_is_register()) Clobber(modrm.rm);
  }
  Step Move(unsigned to, unsigned from) {
    Value value;
    if (from == kSp) value = sp_;
    if (from == kFp) value = fp_;
    if (to == kSp) sp_ = value;
    if (to == kFp) SetFp(value);
    return Step::kGoOn;
  }
  // The place a memory operand names.
  [[nodiscard]] Value Operand(const ModRm& modrm) const {
    Value value;
    if (!modrm.rm_is_register() && base_ == kSp) value = sp_;
    if (!modrm.rm_is_register() && base_ == kFp) value = fp_;
    return Moved(value, displacement_);
  }
  Step LoadAddress(const ModRm& modrm) {
    const Value value = Operand(modrm);
    if (modrm.reg == kSp) sp_ = value;
    if (modrm.reg == kFp) SetFp(value);
    return Step::kGoOn;
  }
  Step Load(const ModRm& modrm) {
    if (modrm.rm_is_register()) return Move(modrm.reg, modrm.rm);
    if (modrm.reg == kSp) sp_ = std::nullopt;
    if (modrm.reg == kFp) RestoreFp(Operand(modrm));
    return Step::kGoOn;
  }

  ByteReader reader_;
  int32_t word_size_;
  Value sp_ = StackPlace{false, 0};
  Value fp_ = StackPlace{true, 0};
  Value saved_fp_;
  Value pushed_fp_;
  bool fp_is_lost_ = false;
  // Of the current instruction.
  uint8_t rex_ = 0;
  bool operand16_ = false;
  int32_t displacement_ = 0;
  unsigned base_ = 16;  // 16: none, or an index is added
};

ModRm Scanner::ReadModRm() {
  const uint8_t byte = reader_.U8();
  ModRm modrm;
  modrm.mod = byte >> 6;
  modrm.reg = ((byte >> 3) & 7) | ((rex_ & 4u) << 1);
  modrm.rm = (byte & 7) | ((rex_ & 1u) << 3);
  displacement_ = 0;
  base_ = 16;
  if (modrm.mod == 3) return modrm;
  bool wide = modrm.mod == 2;
  base_ = modrm.rm;
  if ((byte & 7) == 4) {
    const uint8_t sib = reader_.U8();
    const bool has_index = ((sib >> 3) & 7) != 4 || (rex_ & 2) != 0;
    base_ = (sib & 7) | ((rex_ & 1u) << 3);
    if (modrm.mod == 0 && (sib & 7) == 5) wide = true;
    if (has_index || wide) base_ = modrm.mod == 0 || has_index ? 16 : base_;
  } else if (modrm.mod == 0 && (byte & 7) == 5) {
    wide = true;  // rip-relative or absolute
    base_ = 16;
  }
  if (wide) {
    displacement_ = reader_.S32();
  } else if (modrm.mod == 1) {
    displacement_ = reader_.S8();
  }
  return modrm;
}

Scanner::Step Scanner::Next() {
  rex_ = 0;
  operand16_ = false;
  uint8_t op = reader_.U8();
  for (; reader_.ok(); op = reader_.U8()) {
    if (op == 0x66) {
      operand16_ = true;
    } else if (op != 0xf2 && op != 0xf3 && op != 0x2e && op != 0x3e && op != 0x64 && op != 0x65) {
      break;
    }
  }
  if (Is64() && (op & 0xf0) == 0x40) {
    rex_ = op;
    op = reader_.U8();
  }
  return OneByte(op);
}

Scanner::Step Scanner::OneByte(uint8_t op) {
  const unsigned low = (op & 7) | ((rex_ & 1u) << 3);
  if (op == 0x0f) return TwoByte();
  if (op < 0x40) {  // add, or, adc, sbb, and, sub, xor, cmp
    const unsigned form = op & 7;
    if (form >= 6) return Step::kUnknown;
    if (form == 4) return Skip(1);
    if (form == 5) return Skip(operand16_ ? 2 : 4);
    const ModRm modrm = ReadModRm();
    if (op < 0x38) Clobber(modrm);
    return Step::kGoOn;
  }
  if (op < 0x50) {  // 32-bit inc, dec
    Clobber(low);
    return Step::kGoOn;
  }
  if (op < 0x58) {
    Push();
    if (low == kFp && fp_ == StackPlace{true, 0}) pushed_fp_ = sp_;
    return Step::kGoOn;
  }
  if (op < 0x60) return Pop(low);
  if (op >= 0x70 && op < 0x80) return Skip(1);  // jcc
  if (op > 0x90 && op < 0x98) {                 // xchg with %eax
    Clobber(low);
    return Step::kGoOn;
  }
  const bool is_string = (op >= 0xa4 && op < 0xa8) || (op >= 0xaa && op < 0xb0);
  if (is_string) return Step::kGoOn;
  if (op >= 0xd8 && op < 0xe0) {  // x87
    ReadModRm();
    return Step::kGoOn;
  }
  if (op >= 0xb0 && op < 0xb8) return Skip(1);
  if (op >= 0xb8 && op < 0xc0) {
    Clobber(low);
    return Skip(operand16_ ? 2 : (rex_ & 8) != 0 ? 8 : 4);
  }
  switch (op) {
    case 0x89: {  // mov reg to r/m
      const ModRm modrm = ReadModRm();
      return modrm.rm_is_register() ? Move(modrm.rm, modrm.reg) : Step::kGoOn;
    }
    case 0x8b:  // mov r/m to reg
      return Load(ReadModRm());
    case 0x8d:
      return LoadAddress(ReadModRm());
    case 0xc2:
    case 0xc3:
      return Step::kReturn;
    case 0xc9:
      return Leave();
    case 0xe8:
      return Skip(4);
    case 0xe9: {
      const int32_t distance = reader_.S32();
      return Jump(distance);
    }
    case 0xeb: {
      const int8_t distance = reader_.S8();
      return Jump(distance);
    }
    default:
      return Rare(op);
  }
}

Scanner::Step Scanner::Rare(uint8_t op) {
  switch (op) {
    case 0x84:
    case 0x85:  // test
    case 0x88:  // mov of bytes to memory
      ReadModRm();
      return Step::kGoOn;
    case 0x63:
    case 0x86:
    case 0x87:
    case 0x8a:
      Clobber(ReadModRm());
      return Step::kGoOn;
    case 0x68:
      Skip(4);
      return Push();
    case 0x6a:
      Skip(1);
      return Push();
    case 0x69:
      Clobber(ReadModRm());
      return Skip(operand16_ ? 2 : 4);
    case 0x6b:
      Clobber(ReadModRm());
      return Skip(1);
    case 0x90:
    case 0x98:
    case 0x99:
    case 0xfc:  // cld
    case 0xfd:
      return Step::kGoOn;
    case 0xa8:
      return Skip(1);
    case 0xa9:
      return Skip(operand16_ ? 2 : 4);
    case 0xc6:
      ReadModRm();
      return Skip(1);
    default:
      return Group(op);
  }
}

// Instructions whose ModRM.reg says what is done to r/m.
Scanner::Step Scanner::Group(uint8_t op) {
  const bool is_group = op == 0x80 || op == 0x81 || op == 0x83 || op == 0xc0 || op == 0xc1 ||
                        op == 0xc7 || (op >= 0xd0 && op <= 0xd3) || op == 0xf6 || op == 0xf7 ||
                        op == 0xfe || op == 0xff;
  if (!is_group) return Step::kUnknown;
  const ModRm modrm = ReadModRm();
  const unsigned what = modrm.reg & 7;
  if (op == 0xff && what == 4) return Step::kReturn;  // jmp
  if (op == 0xff && what == 2) return Step::kGoOn;    // call
  if (op == 0xff && what == 6) return Push();
  int32_t immediate = 0;
  if (op == 0x81 || op == 0xc7 || (op == 0xf7 && what < 2)) {
    immediate = operand16_ ? reader_.S16() : reader_.S32();
  } else if (op == 0x80 || op == 0x83 || op == 0xc0 || op == 0xc1 || (op == 0xf6 && what < 2)) {
    immediate = reader_.S8();
  }
  if (!modrm.rm_is_register()) return Step::kGoOn;
  const bool is_alu = op == 0x81 || op == 0x83;
  if (is_alu && what == 7) return Step::kGoOn;  // cmp
  if (is_alu && modrm.rm == kSp && (what == 0 || what == 5)) {
    MoveSp(what == 0 ? int64_t{immediate} : -int64_t{immediate});
    return Step::kGoOn;
  }
  Clobber(modrm.rm);
  return Step::kGoOn;
}

Scanner::Step Scanner::TwoByte() {
  const uint8_t op = reader_.U8();
  if (op == 0x05) return Step::kGoOn;           // syscall
  if (op >= 0x80 && op < 0x90) return Skip(4);  // jcc
  if ((op & 0xf6) == 0xa4) {                    // shld, shrd: by an immediate, or by %cl
    Clobber(ReadModRm());
    return (op & 1) == 0 ? Skip(1) : Step::kGoOn;
  }
  if (op == 0x0b || op == 0x38 || op == 0x3a) return Step::kUnknown;
  const bool writes_register = (op >= 0x40 && op < 0x50) || op == 0xaf || op == 0xb6 ||
                               op == 0xb7 || op == 0xbe || op == 0xbf || op == 0xbc || op == 0xbd;
  const bool has_modrm = writes_register || op == 0x1e || op == 0x1f || (op >= 0x10 && op < 0x18) ||
                         (op >= 0x28 && op < 0x30) || (op >= 0x50 && op < 0x70) ||
                         (op >= 0x74 && op < 0x77) || op == 0x6e || op == 0x6f || op == 0x7e ||
                         op == 0x7f || (op >= 0x90 && op < 0xa0) || op == 0xb0 || op == 0xb1 ||
                         op == 0xc0 || op == 0xc1 || op >= 0xd0;
  if (!has_modrm) return Step::kUnknown;
  const ModRm modrm = ReadModRm();
  if (writes_register) Clobber(modrm.reg);
  return Step::kGoOn;
}

}  // namespace

std::optional<ScannedFrame> ScanToReturn(ByteView code, size_t start, unsigned word_size) {
  return Scanner(code, start, word_size).Run();
}

}  // namespace stackreel::unwind::x86_64
