// Reading the dumped stack by words of a CPU.
#pragma once

#include <cstdint>

#include "unwind/unwind.h"

namespace stackreel::unwind {

template <class Cpu>
bool ReadWord(const StackView& stack, uint64_t address, uint64_t& value) {
  if constexpr (Cpu::kWordSize == 8) {
    return stack.Read64(address, value);
  } else {
    uint32_t narrow = 0;
    if (!stack.Read32(address, narrow)) return false;
    value = narrow;
    return true;
  }
}

// Why a word of the stack at `address` could not be read.
inline StackEnd EndOfUnreadable(const UnwindInput& input, uint64_t address) {
  const StackView& stack = input.stack;
  if (stack.bytes().empty()) return StackEnd::kDumpExhausted;
  const bool is_past = static_cast<int64_t>(address - stack.start().value) >= 0;
  return is_past && input.stack_was_cut ? StackEnd::kDumpExhausted : StackEnd::kBadCfa;
}

}  // namespace stackreel::unwind
