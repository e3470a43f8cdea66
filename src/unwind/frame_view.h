// A frame's registers, and what CFI says of the caller's.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dwarf/cfi.h"
#include "dwarf/expression.h"
#include "unwind/stack_words.h"
#include "unwind/unwind.h"

namespace stackreel::unwind {

// By DWARF number; bit n of `known`: values[n] is.
template <class Cpu>
struct RegisterFile {
  static_assert(Cpu::kRegisters <= 64);
  std::array<uint64_t, Cpu::kRegisters> values{};
  uint64_t known = 0;

  [[nodiscard]] bool Has(unsigned reg) const { return ((known >> reg) & 1) != 0; }
  void Set(unsigned reg, uint64_t value) {
    values[reg] = static_cast<typename Cpu::Word>(value);
    known |= uint64_t{1} << reg;
  }
  void Forget(unsigned reg) { known &= ~(uint64_t{1} << reg); }
};

// What expressions see of a frame: its registers, the dumped stack, and bytes of files that the
// process cannot have changed. Holds references to what it is made of.
template <class Cpu>
class FrameView : public dwarf::ExpressionContext {
 public:
  FrameView(const UnwindInput& input, const RegisterFile<Cpu>& registers)
      : input_(input), registers_(registers) {}

  [[nodiscard]] std::optional<uint64_t> Register(unsigned reg) const override {
    if (reg >= Cpu::kRegisters || !registers_.Has(reg)) return std::nullopt;
    return registers_.values[reg];
  }
  [[nodiscard]] std::optional<uint64_t> Memory(Avma address, unsigned size) const override {
    const ByteView stack = input_.stack.bytes();
    const uint64_t offset = address - input_.stack.start();
    if (stack.size() >= size && offset <= stack.size() - size) {
      return Load(stack.data() + offset, size);
    }
    const UnwindMapping* mapping = input_.maps->Find(address.value);
    failed_at_ = address.value;
    if (mapping == nullptr || mapping->module == nullptr) return std::nullopt;
    const ByteView file = mapping->module->ReadOnlyBytesAt(Svma(address.value - mapping->bias));
    if (file.size() < size) return std::nullopt;
    failed_at_.reset();
    return Load(file.data(), size);
  }
  [[nodiscard]] std::optional<uint64_t> Cfa(const dwarf::CfaRule& rule, uint64_t bias) const {
    if (rule.is_expression) {
      const auto value = Evaluate(rule.expression, bias, std::nullopt);
      if (!value) return std::nullopt;
      return *value;
    }
    const auto value = Register(rule.reg);
    if (!value) return std::nullopt;
    return static_cast<typename Cpu::Word>(*value + static_cast<uint64_t>(rule.offset));
  }
  // The caller's value of a register. What is saved is saved on the stack.
  [[nodiscard]] std::optional<uint64_t> Caller(const dwarf::RegisterRule& rule, uint64_t cfa,
                                               uint64_t bias) const {
    using dwarf::RuleKind;
    failed_at_.reset();
    uint64_t at = cfa + static_cast<uint64_t>(rule.offset);
    switch (rule.kind) {
      case RuleKind::kRegister:
        return Register(rule.other);
      case RuleKind::kValOffset:
        return at;
      case RuleKind::kOffset:
        break;
      case RuleKind::kExpression:
      case RuleKind::kValExpression: {
        const auto value = Evaluate(rule.expression, bias, cfa);
        if (!value) return std::nullopt;
        if (rule.kind == RuleKind::kValExpression) return *value;
        at = *value;
        break;
      }
      case RuleKind::kUndefined:
      case RuleKind::kSameValue:
        return std::nullopt;
    }
    at = static_cast<typename Cpu::Word>(at);
    uint64_t value = 0;
    if (ReadWord<Cpu>(input_.stack, at, value)) return value;
    failed_at_ = at;
    return std::nullopt;
  }
  // How a stack ends for which the last Cfa or Caller gave nothing.
  [[nodiscard]] StackEnd Failure() const {
    return failed_at_ ? EndOfUnreadable(input_, *failed_at_) : StackEnd::kBadCfi;
  }

 private:
  [[nodiscard]] Result<uint64_t> Evaluate(ByteView expression, uint64_t bias,
                                          std::optional<uint64_t> initial) const {
    return dwarf::Evaluate({.bytes = expression,
                            .endian = input_.stack.endian(),
                            .address_size = Cpu::kWordSize,
                            .initial = initial,
                            .bias = bias},
                           *this);
  }
  [[nodiscard]] uint64_t Load(const uint8_t* p, unsigned size) const {
    const Endian endian = input_.stack.endian();
    switch (size) {
      case 1:
        return *p;
      case 2:
        return LoadUnaligned<uint16_t>(p, endian);
      case 4:
        return LoadUnaligned<uint32_t>(p, endian);
      default:
        return LoadUnaligned<uint64_t>(p, endian);
    }
  }

  const UnwindInput& input_;
  const RegisterFile<Cpu>& registers_;
  mutable std::optional<uint64_t> failed_at_;  // memory that was wanted and is not known
};

}  // namespace stackreel::unwind
