// How a thread that is made to do a system call gets back by itself, should its tracer be killed
// meanwhile: the kernel then lets it go on, with the registers of that call. x86-64 only.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "os/proc.h"
#include "os/traced_thread.h"

namespace stackreel::os {

// Where a process has the code for it.
struct SystemCallPlace {
  uint64_t instruction = 0;  // `syscall`; with a restorer behind it, `syscall; ret`
  uint64_t restorer = 0;     // `mov rax, 15; syscall`, which is rt_sigreturn(2); 0: there is none
};

using MemoryRead = std::function<Status(uint64_t at, std::span<uint8_t> out)>;

// Looks through the code of a process that comes out of files, small pieces first. kUnsupported:
// nothing there makes a system call.
Result<SystemCallPlace> FindSystemCallPlace(std::vector<ProcMapping> maps, const MemoryRead& read);
// Whether that is still there.
bool HoldsSystemCallPlace(const SystemCallPlace& place, const MemoryRead& read);

// What is put on the stack for the way back: to the address `at`, at which the stack pointer has to
// stand when the system call is made.
struct ReturnFrame {
  uint64_t at = 0;
  std::vector<uint8_t> bytes;
};

// The frame of a signal that came where `registers` are, as the kernel makes it (struct rt_sigframe
// in arch/x86/include/asm/sigframe.h), below the red zone:
//
//   at      the restorer, to which the `ret` behind the system call goes
//   at + 8  ucontext: registers, blocked signals; the alternate stack is left as it is
//   …       vector state, at a multiple of 64
//
// A system call that the registers say is to be made again is. `vector_state`: NT_X86_XSTATE; an
// empty frame without it, as there is no way back then that keeps vector registers.
ReturnFrame MakeReturnFrame(const TracedRegisters& registers, uint64_t blocked_signals,
                            std::span<const uint8_t> vector_state, uint64_t restorer);

}  // namespace stackreel::os
