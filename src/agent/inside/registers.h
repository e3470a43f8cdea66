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
// st0, where a long double is returned. Taken from an image of the registers, as FXSAVE writes it
// (Intel's manual, volume 1, 10.5.1): that neither waits for an exception that is pending, nor
// raises or changes anything. A store would: it pops, and of an empty register it is invalid.
struct ExtendedFloat {
  uint64_t mantissa;
  uint64_t exponent;
};
// False where st0 is empty, as it is behind a function that returns none. Not inlined, so that
// nobody else's frame on the program's stack has room for the image.
[[gnu::noinline]] inline bool ReadExtendedFloat(ExtendedFloat& value) {
  alignas(16) uint64_t image[64];
  __asm__ volatile("fxsave64 %0" : "=m"(image));
  constexpr uint32_t kSt0 = 4;  // in words
  const uint64_t top = image[0] >> (16 + 11) & 7;
  // A bit a register, not of the stack: set where something is in it.
  const uint64_t full = image[0] >> 32 & 0xff;
  if ((full >> top & 1) == 0) return false;
  value.mantissa = image[kSt0];
  value.exponent = image[kSt0 + 1] & 0xffff;
  return true;
}

}  // namespace stackreel::agent
