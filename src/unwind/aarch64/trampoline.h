// The kernel's signal frame (arch/arm64/kernel/signal.c, asm/sigcontext.h).
#pragma once

#include <cstdint>

#include "base/address.h"
#include "unwind/unwind.h"

namespace stackreel::unwind::aarch64 {

// From the trampoline's sp: siginfo 128, ucontext { flags 8, link 8, stack 24, sigmask 128, pad to
// 16 }, sigcontext { fault address 8, x0-x30, sp, pc, pstate, pad to 16, reserved records }.
inline constexpr int32_t kSavedX0 = 128 + 176 + 8;
inline constexpr int32_t kSavedFp = kSavedX0 + 8 * 29, kSavedLr = kSavedX0 + 8 * 30,
                         kSavedSp = kSavedX0 + 8 * 31, kSavedPc = kSavedX0 + 8 * 32;

// Whether the trampoline mov x8, #139; svc #0 begins at `pc`; or, for an exact pc, one of its
// instructions is there, or its end (while the system call runs). CFI is not asked: the one of
// kernels before 5.8 leads by x29 to the frame below the interrupted one.
bool IsTrampoline(const UnwindModule& module, Svma pc, bool exact);

// Whether a signal frame lies at `sp`, where the code is not known (a vDSO that was not kept): its
// first reserved record is that of the floating-point registers, sp and pc are possible.
bool IsSignalFrame(const UnwindInput& input, uint64_t sp);

}  // namespace stackreel::unwind::aarch64
