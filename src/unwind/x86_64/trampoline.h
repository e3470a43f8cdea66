// Signal trampolines known by their code, where there is no CFI for them.
#pragma once

#include <array>
#include <cstdint>

#include "base/address.h"
#include "unwind/unwind.h"
#include "unwind/x86_64/fast_rule.h"
#include "unwind/x86_64/registers.h"

namespace stackreel::unwind::x86_64 {

// Where the kernel saved each DWARF register, counted from the trampoline's sp.
template <class Cpu>
using SavedRegisters = std::array<int16_t, Cpu::kRegisters>;

// The layout behind the trampoline whose first instruction is at `pc`; or, for an exact pc, one of
// whose instructions is, or whose end is (while the system call runs). Null if it is none. The code
// is
//   64 bit: mov $15,%rax (or %eax); syscall
//   32 bit: mov $173,%eax; int $0x80, or [pop %eax;] mov $119,%eax; int $0x80
template <class Cpu>
const SavedRegisters<Cpu>* FindTrampoline(const UnwindModule& module, Svma pc, bool exact);
template <>
const SavedRegisters<Cpu64>* FindTrampoline<Cpu64>(const UnwindModule& module, Svma pc, bool exact);
template <>
const SavedRegisters<Cpu32>* FindTrampoline<Cpu32>(const UnwindModule& module, Svma pc, bool exact);

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
