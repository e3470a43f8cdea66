#include "os/pointer_authentication.h"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#endif

namespace stackreel::os {

#if defined(__aarch64__)

namespace {

constexpr uint64_t kAllButBit55 = ~(uint64_t{1} << 55);
// A code of a user pointer lies below bit 55; the byte above is a tag.
constexpr uint64_t kBelowBit55 = (uint64_t{1} << 55) - 1;

uint64_t StripInstructionPointer(uint64_t pointer) {
  register uint64_t x30 asm("x30") = pointer;
  asm volatile("hint #7" : "+r"(x30));  // xpaclri: does nothing where there are no codes
  return x30;
}

// Only where the CPU has it.
uint64_t StripDataPointer(uint64_t pointer) {
  register uint64_t x0 asm("x0") = pointer;
  asm volatile(".inst 0xdac147e0" : "+r"(x0));  // xpacd x0
  return x0;
}

}  // namespace

std::optional<PointerAuthentication> LearnPointerAuthentication() {
  if ((getauxval(AT_HWCAP) & HWCAP_PACA) == 0) return std::nullopt;
  PointerAuthentication found;
  found.insn_mask = (StripInstructionPointer(kAllButBit55) ^ kAllButBit55) & kBelowBit55;
  found.data_mask = (StripDataPointer(kAllButBit55) ^ kAllButBit55) & kBelowBit55;
  constexpr int kGetEnabledKeys = 61;  // PR_PAC_GET_ENABLED_KEYS, Linux 5.13
  const int keys = prctl(kGetEnabledKeys, 0, 0, 0, 0);
  if (keys >= 0) found.enabled_keys = static_cast<uint64_t>(keys);
  if (found.insn_mask == 0) return std::nullopt;
  return found;
}

#else

std::optional<PointerAuthentication> LearnPointerAuthentication() { return std::nullopt; }

#endif

}  // namespace stackreel::os
