// Signal trampolines known by their code, where there is no CFI for them.
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "unwind/x86_64/fast_rule.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind::x86_64 {

// Where the kernel saved each DWARF register, counted from the trampoline's sp.
template <class Cpu>
using SavedRegisters = std::array<int16_t, Cpu::kRegisters>;

// The layout behind the trampoline that `code` is; null if it is none. In 64-bit code
// `mov $15,%rax (or %eax); syscall`; in 32-bit code `[pop %eax;] mov $119 (or 173),%eax; int
// $0x80`.
template <class Cpu>
const SavedRegisters<Cpu>* FindTrampoline(ByteView code);

template <class Cpu>
FastRule TrampolineRule(const SavedRegisters<Cpu>& layout) {
  FastRule rule;
  rule.kind = FastKind::kSignal;
  rule.cfa_offset = layout[Cpu::kSp];
  rule.ra_offset = layout[Cpu::kIp];
  rule.fp_offset = layout[Cpu::kBp];
  return rule;
}

}  // namespace stackreel::unwind::x86_64
