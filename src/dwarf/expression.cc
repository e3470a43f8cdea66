#include "dwarf/expression.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/byte_reader.h"

namespace stackreel::dwarf {
namespace {

constexpr size_t kMaxStack = 64;
constexpr unsigned kMaxSteps = 1000;

// DW_OP_* (DWARF 5, section 7.7.1).
enum : uint8_t {
  kAddr = 0x03,
  kDeref = 0x06,
  kConst1u = 0x08,
  kConst1s = 0x09,
  kConst2u = 0x0a,
  kConst2s = 0x0b,
  kConst4u = 0x0c,
  kConst4s = 0x0d,
  kConst8u = 0x0e,
  kConst8s = 0x0f,
  kConstu = 0x10,
  kConsts = 0x11,
  kDup = 0x12,
  kDrop = 0x13,
  kOver = 0x14,
  kPick = 0x15,
  kSwap = 0x16,
  kRot = 0x17,
  kAbs = 0x19,
  kAnd = 0x1a,
  kDiv = 0x1b,
  kMinus = 0x1c,
  kMod = 0x1d,
  kMul = 0x1e,
  kNeg = 0x1f,
  kNot = 0x20,
  kOr = 0x21,
  kPlus = 0x22,
  kPlusUconst = 0x23,
  kShl = 0x24,
  kShr = 0x25,
  kShra = 0x26,
  kXor = 0x27,
  kBra = 0x28,
  kEq = 0x29,
  kGe = 0x2a,
  kGt = 0x2b,
  kLe = 0x2c,
  kLt = 0x2d,
  kNe = 0x2e,
  kSkip = 0x2f,
  kLit0 = 0x30,
  kLit31 = 0x4f,
  kReg0 = 0x50,
  kReg31 = 0x6f,
  kBreg0 = 0x70,
  kBreg31 = 0x8f,
  kRegx = 0x90,
  kBregx = 0x92,
  kDerefSize = 0x94,
  kNop = 0x96,
  kStackValue = 0x9f,
};

std::unexpected<Error> DamagedExpression(std::string message) {
  return Fail(ErrorKind::kDamaged, "DWARF expression: " + std::move(message));
}

class Machine {
 public:
  Machine(const ExpressionInput& input, const ExpressionContext& context)
      : input_(input), context_(context), reader_(input.bytes, input.endian) {}

  Result<uint64_t> Run() {
    if (input_.address_size != 4 && input_.address_size != 8) {
      return DamagedExpression(fmt::format("address size {}", input_.address_size));
    }
    if (input_.initial) Push(*input_.initial);
    for (unsigned steps = 0; !reader_.AtEnd(); ++steps) {
      if (steps == kMaxSteps)
        return DamagedExpression(fmt::format("more than {} steps", kMaxSteps));
      const uint8_t op = reader_.U8();
      if (op == kStackValue) break;
      TRY(Step(op));
      if (!reader_.ok()) return DamagedExpression("cut short");
      if (overflow_) return DamagedExpression(fmt::format("more than {} values", kMaxStack));
      if (underflow_)
        return DamagedExpression(fmt::format("too few values for operation {:#04x}", op));
    }
    if (depth_ == 0) return DamagedExpression("leaves no value");
    return stack_[depth_ - 1];
  }

 private:
  void Push(uint64_t value) {
    if (depth_ == kMaxStack) {
      overflow_ = true;
      return;
    }
    stack_[depth_++] = input_.address_size == 4 ? value & UINT32_MAX : value;
  }
  uint64_t Pop() {
    if (depth_ == 0) {
      underflow_ = true;
      return 0;
    }
    return stack_[--depth_];
  }
  // A value of the generic type taken as signed.
  [[nodiscard]] int64_t Signed(uint64_t value) const {
    return input_.address_size == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
  }
  void Pick(uint64_t index) {
    if (index >= depth_) {
      underflow_ = true;
    } else {
      Push(stack_[depth_ - 1 - index]);
    }
  }

  Status PushRegister(uint64_t reg, int64_t offset) {
    const auto value = context_.Register(static_cast<unsigned>(std::min<uint64_t>(reg, 0xffff)));
    if (!value) return DamagedExpression(fmt::format("register {} is not known", reg));
    Push(*value + static_cast<uint64_t>(offset));
    return {};
  }
  Status Dereference(unsigned size) {
    if (size != 1 && size != 2 && size != 4 && size != 8) {
      return DamagedExpression(fmt::format("reads {} bytes", size));
    }
    const uint64_t address = Pop();
    if (underflow_) return {};
    const auto value = context_.Memory(Avma(address), size);
    if (!value) return DamagedExpression(fmt::format("memory at {:#x} is not known", address));
    Push(*value);
    return {};
  }
  void Jump() {
    const int64_t distance = reader_.S16();
    // A target before the start wraps to a huge offset, which Seek refuses.
    reader_.Seek(reader_.offset() + static_cast<uint64_t>(distance));
  }

  Status Step(uint8_t op);
  bool Constant(uint8_t op);
  Status Arrange(uint8_t op);
  Status Compute(uint8_t op);
  Status Divide(uint8_t op, uint64_t left, uint64_t right);
  [[nodiscard]] uint64_t Shift(uint8_t op, uint64_t value, uint64_t count) const;

  const ExpressionInput& input_;
  const ExpressionContext& context_;
  ByteReader reader_;
  std::array<uint64_t, kMaxStack> stack_;
  size_t depth_ = 0;
  bool overflow_ = false;
  bool underflow_ = false;
};

Status Machine::Step(uint8_t op) {
  if (op >= kLit0 && op <= kLit31) {
    Push(op - kLit0);
    return {};
  }
  // A register's number, as libgcc takes it: its value.
  if (op >= kReg0 && op <= kReg31) return PushRegister(op - kReg0, 0);
  if (op >= kBreg0 && op <= kBreg31) return PushRegister(op - kBreg0, reader_.Sleb128());
  if (Constant(op)) return {};
  switch (op) {
    case kRegx:
      return PushRegister(reader_.Uleb128(), 0);
    case kBregx: {
      const uint64_t reg = reader_.Uleb128();
      return PushRegister(reg, reader_.Sleb128());
    }
    case kDeref:
      return Dereference(input_.address_size);
    case kDerefSize:
      return Dereference(reader_.U8());
    case kSkip:
      Jump();
      return {};
    case kBra:
      if (Pop() != 0) {
        Jump();
      } else {
        reader_.Skip(2);
      }
      return {};
    case kNop:
      return {};
    default:
      return Arrange(op);
  }
}

bool Machine::Constant(uint8_t op) {
  switch (op) {
    case kAddr:
      Push((input_.address_size == 4 ? reader_.U32() : reader_.U64()) + input_.bias);
      return true;
    case kConst1u:
      Push(reader_.U8());
      return true;
    case kConst1s:
      Push(static_cast<uint64_t>(int64_t{reader_.S8()}));
      return true;
    case kConst2u:
      Push(reader_.U16());
      return true;
    case kConst2s:
      Push(static_cast<uint64_t>(int64_t{reader_.S16()}));
      return true;
    case kConst4u:
      Push(reader_.U32());
      return true;
    case kConst4s:
      Push(static_cast<uint64_t>(int64_t{reader_.S32()}));
      return true;
    case kConst8u:
    case kConst8s:
      Push(reader_.U64());
      return true;
    case kConstu:
      Push(reader_.Uleb128());
      return true;
    case kConsts:
      Push(static_cast<uint64_t>(reader_.Sleb128()));
      return true;
    default:
      return false;
  }
}

// Operations that move values about.
Status Machine::Arrange(uint8_t op) {
  switch (op) {
    case kDup:
      Pick(0);
      return {};
    case kDrop:
      Pop();
      return {};
    case kOver:
      Pick(1);
      return {};
    case kPick:
      Pick(reader_.U8());
      return {};
    case kSwap: {
      const uint64_t top = Pop();
      const uint64_t second = Pop();
      Push(top);
      Push(second);
      return {};
    }
    case kRot: {  // the top goes below the two under it
      const uint64_t top = Pop();
      const uint64_t second = Pop();
      const uint64_t third = Pop();
      Push(top);
      Push(third);
      Push(second);
      return {};
    }
    default:
      return Compute(op);
  }
}

Status Machine::Compute(uint8_t op) {
  const uint64_t right = Pop();
  switch (op) {
    case kAbs:
      Push(Signed(right) < 0 ? 0 - right : right);
      return {};
    case kNeg:
      Push(0 - right);
      return {};
    case kNot:
      Push(~right);
      return {};
    case kPlusUconst:
      Push(right + reader_.Uleb128());
      return {};
    default:
      break;
  }
  const uint64_t left = Pop();
  switch (op) {
    case kAnd:
      Push(left & right);
      return {};
    case kOr:
      Push(left | right);
      return {};
    case kXor:
      Push(left ^ right);
      return {};
    case kPlus:
      Push(left + right);
      return {};
    case kMinus:
      Push(left - right);
      return {};
    case kMul:
      Push(left * right);
      return {};
    case kDiv:
    case kMod:
      return Divide(op, left, right);
    case kShl:
    case kShr:
    case kShra:
      Push(Shift(op, left, right));
      return {};
    case kEq:
      Push(Signed(left) == Signed(right) ? 1 : 0);
      return {};
    case kGe:
      Push(Signed(left) >= Signed(right) ? 1 : 0);
      return {};
    case kGt:
      Push(Signed(left) > Signed(right) ? 1 : 0);
      return {};
    case kLe:
      Push(Signed(left) <= Signed(right) ? 1 : 0);
      return {};
    case kLt:
      Push(Signed(left) < Signed(right) ? 1 : 0);
      return {};
    case kNe:
      Push(Signed(left) != Signed(right) ? 1 : 0);
      return {};
    default:
      return DamagedExpression(fmt::format("unknown operation {:#04x}", op));
  }
}

// div is signed, mod is not (as gdb and libgcc have it).
Status Machine::Divide(uint8_t op, uint64_t left, uint64_t right) {
  if (underflow_) return {};
  if (right == 0) return DamagedExpression("division by zero");
  if (op == kMod) {
    Push(left % right);
  } else if (Signed(right) == -1) {
    Push(0 - left);  // also for the least value, whose quotient does not fit
  } else {
    Push(static_cast<uint64_t>(Signed(left) / Signed(right)));
  }
  return {};
}

uint64_t Machine::Shift(uint8_t op, uint64_t value, uint64_t count) const {
  const uint64_t bits = uint64_t{input_.address_size} * 8;
  if (op == kShra) return static_cast<uint64_t>(Signed(value) >> std::min(count, bits - 1));
  if (count >= bits) return 0;
  return op == kShl ? value << count : value >> count;
}

}  // namespace

Result<uint64_t> Evaluate(const ExpressionInput& input, const ExpressionContext& context) {
  return Machine(input, context).Run();
}

}  // namespace stackreel::dwarf
