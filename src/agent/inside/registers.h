// What the traced function's registers hold while the agent is at work for it.
#pragma once

#include <cstdint>

namespace stackreel::agent {

// As SAVE and SAVE_REST in entry.S leave them on the stack. On the way in the integer arguments
// stand here (rdi, rsi, rdx, rcx, r8, r9), and those that do not fit begin behind the return
// address, at place + 8; on the way out the return value does (rax, rdx). What is changed here is
// changed for the traced program.
struct SavedRegisters {
  uint64_t flags, rbp, r11, r10, r9, r8, rdi, rsi, rdx, rcx, rax;
  uint64_t to_stub;
};

// Vector and x87 registers are never saved: the agent's code has no instruction that changes them,
// so they hold until its return what the traced program has in them.
struct VectorRegister {
  uint64_t low, high;
};
// xmm0 … xmm7: floating-point arguments, and in the first two return values.
inline void ReadVectorRegisters(VectorRegister (&to)[8]) {
  __asm__ volatile(
      "movups %%xmm0, (%0)\n movups %%xmm1, 16(%0)\n movups %%xmm2, 32(%0)\n"
      "movups %%xmm3, 48(%0)\n movups %%xmm4, 64(%0)\n movups %%xmm5, 80(%0)\n"
      "movups %%xmm6, 96(%0)\n movups %%xmm7, 112(%0)"
      :
      : "r"(to)
      : "memory");
}
// st0, where a long double is returned; only of a function that returns one, as the register is
// empty else.
struct ExtendedFloat {
  uint64_t mantissa;
  uint16_t exponent;
};
inline ExtendedFloat ReadExtendedFloat() {
  ExtendedFloat value = {};
  // There is no store that does not pop.
  __asm__ volatile("fstpt (%0)\n fldt (%0)" : : "r"(&value) : "memory");
  return value;
}

}  // namespace stackreel::agent
