// DWARF expressions as CFI uses them: a bounded stack machine (DWARF 5, section 2.5).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::dwarf {

// What an expression may look at.
class ExpressionContext {
 public:
  virtual ~ExpressionContext() = default;
  virtual std::optional<uint64_t> Register(unsigned dwarf_register) const = 0;
  // `size` bytes (1, 2, 4, 8) of the process's memory, zero-extended.
  virtual std::optional<uint64_t> Memory(Avma address, unsigned size) const = 0;
};

struct ExpressionInput {
  ByteView bytes;
  Endian endian = Endian::kLittle;
  unsigned address_size = 8;
  std::optional<uint64_t> initial;  // pushed first: the CFA, for register rules
  uint64_t bias = 0;                // added to DW_OP_addr: avma - svma of the module
};

// The top of the stack at the end. Fails on an unknown operation, a register or memory that is not
// to be had, an empty or overfull (64) stack, or more than 1,000 steps.
Result<uint64_t> Evaluate(const ExpressionInput& input, const ExpressionContext& context);

}  // namespace stackreel::dwarf
