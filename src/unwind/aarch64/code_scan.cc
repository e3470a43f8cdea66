#include "unwind/aarch64/code_scan.h"

#include <limits>
#include <map>
#include <utility>

#include "unwind/aarch64/code_bytes.h"
#include "unwind/aarch64/registers.h"

namespace stackreel::unwind::aarch64 {
namespace {

constexpr size_t kMaxInstructions = 256;
constexpr unsigned kFp = Cpu::kFp, kLr = Cpu::kLr, kSp = Cpu::kSp;

// What is in a register, in terms of the registers at the start.
struct Value {
  enum class Kind : uint8_t {
    kUnknown,
    kFpThen,  // x29 + offset
    kLrThen,  // x30
    kSpThen,  // sp + offset
    kLoaded,  // the word at sp (or, from_fp, x29) + offset
  };
  Kind kind = Kind::kUnknown;
  bool from_fp = false;
  int64_t offset = 0;
};

constexpr int64_t SignExtend(uint32_t bits, unsigned width) {
  const int64_t sign = int64_t{1} << (width - 1);
  return (static_cast<int64_t>(bits) ^ sign) - sign;
}

class Scan {
 public:
  Scan(ByteView code, size_t start) : code_(code), at_(start) {}

  std::optional<ScannedFrame> Run() {
    for (size_t n = 0; n < kMaxInstructions; ++n) {
      if (at_ > code_.size() || code_.size() - at_ < kInstructionSize) return std::nullopt;
      const uint32_t instruction = InstructionAt(code_, at_);
      at_ += kInstructionSize;
      switch (Step(instruction)) {
        case Next::kGoOn:
          break;
        case Next::kReturns:
          return Found();
        case Next::kLost:
          return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  enum class Next : uint8_t { kGoOn, kReturns, kLost };

  Next Step(uint32_t i) {
    if (i >> 16 == 0) return Next::kLost;  // UDF: padding
    if (IsCall(i)) {
      lr_ = Value();
      return Next::kGoOn;
    }
    if (LeavesFunction(i)) return Next::kReturns;
    if ((i & 0xfc000000) == 0x14000000) return Jump(i);
    // B.cond, CBZ, CBNZ, TBZ, TBNZ: not taken.
    const bool is_conditional = (i & 0xff000000) == 0x54000000 || (i & 0x7e000000) == 0x34000000 ||
                                (i & 0x7e000000) == 0x36000000;
    if (is_conditional) return Next::kGoOn;
    if ((i & 0x3a000000) == 0x28000000) return Pair(i);
    if ((i & 0x3b000000) == 0x39000000) return UnsignedOffset(i);
    if ((i & 0x3b200000) == 0x38000000) return SignedOffset(i);
    if ((i & 0xbf800000) == 0x91000000) return AddImmediate(i);
    return Other(i);
  }

  // RET, RETAA, RETAB, RETAASPPC; BR, BRAA, BRAAZ and so on: a tail call, or a PLT entry's jump.
  static bool LeavesFunction(uint32_t i) {
    return (i & 0xfffffc1f) == 0xd65f0000 || (i & 0xfffffbff) == 0xd65f0bff ||
           (i & 0xffc0001f) == 0x5500001f || (i & 0xfffffc1f) == 0xd61f0000 ||
           (i & 0xfefff800) == 0xd61f0800;
  }

  Next Jump(uint32_t i) {
    const int64_t target = static_cast<int64_t>(at_) - 4 + 4 * SignExtend(i & 0x3ffffff, 26);
    // Out of what is known of the code: a tail call.
    if (target < 0 || target >= static_cast<int64_t>(code_.size())) return Next::kReturns;
    at_ = static_cast<size_t>(target);
    return Next::kGoOn;
  }

  // The place a memory access of base register `rn` begins at; false if it cannot be told.
  bool Place(unsigned rn, int64_t offset, std::pair<bool, int64_t>& place) const {
    const Value* base = rn == kSp ? &sp_ : rn == kFp ? &fp_ : nullptr;
    if (base == nullptr) return false;
    if (base->kind != Value::Kind::kSpThen && base->kind != Value::Kind::kFpThen) return false;
    place = {base->kind == Value::Kind::kFpThen, base->offset + offset};
    return true;
  }
  Value LoadFrom(std::pair<bool, int64_t> place) const {
    const auto stored = stored_.find(place);
    if (stored != stored_.end()) return stored->second;
    return {Value::Kind::kLoaded, place.first, place.second};
  }
  Value* Tracked(unsigned reg) { return reg == kFp ? &fp_ : reg == kLr ? &lr_ : nullptr; }

  // One register of a load or store; `wide`: a general register of 64 bits.
  void Transfer(bool load, bool wide, unsigned reg, unsigned rn, int64_t offset) {
    std::pair<bool, int64_t> place;
    const bool known = wide && Place(rn, offset, place);
    Value* value = Tracked(reg);
    if (load) {
      if (value != nullptr) *value = known ? LoadFrom(place) : Value();
    } else if (known) {
      stored_[place] = value != nullptr ? *value : Value();
    }
  }
  void WriteBack(unsigned rn, int64_t offset) {
    if (rn == kSp) sp_.offset += offset;
    if (Value* value = Tracked(rn)) value->offset += offset;
  }

  // oo101V0M MLiiiiii i2222 2nnnn n1111 1: M 00, 10 at the offset, 01 after, 11 before; L load.
  Next Pair(uint32_t i) {
    const bool vector = ((i >> 26) & 1) != 0;
    const unsigned opc = i >> 30;
    const bool wide = !vector && opc == 2;
    const int64_t size = vector ? int64_t{4} << opc : wide ? 8 : 4;
    const unsigned mode = (i >> 23) & 3;
    const bool load = ((i >> 22) & 1) != 0;
    const unsigned rn = (i >> 5) & 31;
    const int64_t offset = size * SignExtend((i >> 15) & 0x7f, 7);
    if (!vector) {
      const int64_t first = mode == 1 ? 0 : offset;
      Transfer(load, wide, i & 31, rn, first);
      Transfer(load, wide, (i >> 10) & 31, rn, first + size);
    }
    if ((mode & 1) != 0) WriteBack(rn, offset);
    return Next::kGoOn;
  }

  // ss111V01 ooiiiiii iiiiiinn nnn11111
  Next UnsignedOffset(uint32_t i) {
    if (((i >> 26) & 1) != 0) return Next::kGoOn;
    const bool wide = i >> 30 == 3;
    const bool load = ((i >> 22) & 3) != 0;
    Transfer(load, wide, i & 31, (i >> 5) & 31, 8 * static_cast<int64_t>((i >> 10) & 0xfff));
    return Next::kGoOn;
  }

  // ss111V00 oo0iiiii iiiimmnn nnn11111: m 01 after, 11 before.
  Next SignedOffset(uint32_t i) {
    const bool vector = ((i >> 26) & 1) != 0;
    const bool wide = i >> 30 == 3;
    const bool load = ((i >> 22) & 3) != 0;
    const unsigned rn = (i >> 5) & 31;
    const unsigned mode = (i >> 10) & 3;
    const int64_t offset = SignExtend((i >> 12) & 0x1ff, 9);
    if (!vector) Transfer(load, wide, i & 31, rn, mode == 1 ? 0 : offset);
    if ((mode & 1) != 0) WriteBack(rn, offset);
    return Next::kGoOn;
  }

  // ADD, SUB (immediate), 64 bits; MOV to and from sp is one.
  Next AddImmediate(uint32_t i) {
    const unsigned rd = i & 31;
    const unsigned rn = (i >> 5) & 31;
    Value* to = rd == kSp ? &sp_ : Tracked(rd);
    if (to == nullptr) return Next::kGoOn;
    int64_t amount = (i >> 10) & 0xfff;
    if ((i & 0x00400000) != 0) amount <<= 12;
    if ((i & 0x40000000) != 0) amount = -amount;
    const Value* from = rn == kSp ? &sp_ : rn == kFp ? &fp_ : nullptr;
    Value result = from != nullptr ? *from : Value();
    result.offset += amount;
    *to = result;
    return Usable();
  }
  [[nodiscard]] Next Usable() const {
    const bool known = sp_.kind == Value::Kind::kSpThen || sp_.kind == Value::Kind::kFpThen;
    return known ? Next::kGoOn : Next::kLost;
  }

  // Anything else writes, if any of ours, the register in its low bits; vector instructions write
  // none. ADD, SUB, AND, ORR, EOR to sp with a register or a mask are not followed.
  Next Other(uint32_t i) {
    const bool adds_to_sp = (i & 0x3fe0001f) == 0x0b20001f;
    const bool masks_sp = (i & 0x1f80001f) == 0x1200001f && ((i >> 29) & 3) != 3;
    if (adds_to_sp || masks_sp) return Next::kLost;
    if ((i & 0x0e000000) == 0x0e000000) return Next::kGoOn;
    if (Value* value = Tracked(i & 31)) *value = Value();
    return Next::kGoOn;
  }

  [[nodiscard]] std::optional<ScannedFrame> Found() const {
    ScannedFrame found;
    found.from_fp = sp_.kind == Value::Kind::kFpThen;
    const auto narrow = [](int64_t value, int32_t& to) {
      to = static_cast<int32_t>(value);
      return to == value;
    };
    if (!narrow(sp_.offset, found.cfa_offset)) return std::nullopt;
    const auto saved = [&](const Value& value, std::optional<int32_t>& offset) {
      int32_t narrowed = 0;
      if (value.kind != Value::Kind::kLoaded || value.from_fp != found.from_fp ||
          !narrow(value.offset - sp_.offset, narrowed)) {
        return false;
      }
      offset = narrowed;
      return true;
    };
    if (lr_.kind != Value::Kind::kLrThen && !saved(lr_, found.ra_offset)) return std::nullopt;
    const bool fp_same = fp_.kind == Value::Kind::kFpThen && fp_.offset == 0;
    found.fp_unknown = !fp_same && !saved(fp_, found.fp_offset);
    return found;
  }

  ByteView code_;
  size_t at_;
  Value sp_{Value::Kind::kSpThen, false, 0};
  Value fp_{Value::Kind::kFpThen, true, 0};
  Value lr_{Value::Kind::kLrThen, false, 0};
  std::map<std::pair<bool, int64_t>, Value> stored_;
};

}  // namespace

std::optional<ScannedFrame> ScanToReturn(ByteView code, size_t start) {
  return Scan(code, start).Run();
}

}  // namespace stackreel::unwind::aarch64
