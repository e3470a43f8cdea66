// Where stubs enter the agent. Every register but rsp and rip, the flags and all vector state are
// as they were when these return; nothing that is needed ever lies below rsp. See ../stub.h.
#include "agent/inside/offsets.h"

  .intel_syntax noprefix

// tracedata::AgentCodeHeader
  .section .text.header, "ax"
  .globl agent_header
agent_header:
  .ascii "stragnt1"
  .long AGENT_VERSION
  .long agent_enter - agent_header
  .long agent_enter_framed - agent_header
  .long agent_leave - agent_header
  .long agent_before_unwind - agent_header
  .long agent_after_catch - agent_header
  .long agent_trap - agent_header
  .long agent_trap_return - agent_header
  .long agent_libraries - agent_header
  .long agent_enter_acting - agent_header
  .long agent_enter_framed_acting - agent_header
  .long agent_before_end - agent_header
  .long agent_before_exec - agent_header
  .long agent_before_setting - agent_header

  .text

// Six registers that the short ways use. The flags go to edi: lahf and seto cost a fraction of what
// pushf and popf do.
.macro SAVE
  push rax
  lahf
  seto al
  push rcx
  push rdx
  push rsi
  push rdi
  push r8
  mov edi, eax
.endm
.macro RESTORE
  mov eax, edi
  add al, 0x7f
  sahf
  pop r8
  pop rdi
  pop rsi
  pop rdx
  pop rcx
  pop rax
.endm
// Bytes that SAVE pushes.
#define SAVED 48

// rcx: this thread's slot; `slow` is gone to if that is not found so. Uses rdx, rsi, r8. An entry counts only if its thread id is the one in
// the thread's control block: the pointer may be that of a thread that has ended.
.macro FIND_SLOT slow
  mov edx, [rip + agent_control + CONTROL_TID_OFFSET]
  test edx, edx
  js \slow
  mov rcx, fs:[0]
  mov esi, fs:[rdx]
  movabs rdx, DIRECTORY_HASH
  imul rdx, rcx
  shr rdx, DIRECTORY_SHIFT
  shl rdx, 4
  lea r8, [rip + agent_directory]
  add rdx, r8
  cmp [rdx], rcx
  jne 91f
90:
  cmp [rdx + ENTRY_TID], esi
  jne \slow
  mov ecx, [rdx + ENTRY_SLOT]
  imul rcx, rcx, SLOT_SIZE
  lea rdx, [rip + agent_slots]
  add rcx, rdx
  .pushsection .text.probe, "ax"
  // Behind the last entry stands what is no thread pointer, and then zeros.
91:
  cmp qword ptr [rdx], 0
  je \slow
  add rdx, ENTRY_SIZE
  cmp [rdx], rcx
  jne 91b
  jmp 90b
  .popsection
.endm

// Saves what a C++ function may change besides and aligns the stack; rbp is its end, where what was
// saved begins: see SavedRegisters in agent.h.
.macro SAVE_REST
  push r9
  push r10
  push r11
  push rbp
  push rdi
  mov rbp, rsp
  and rsp, -16
.endm
.macro RESTORE_REST
  mov rsp, rbp
  pop rdi
  pop rbp
  pop r11
  pop r10
  pop r9
.endm
#define SAVED_REST 40

// Jumps to `pass` if, by what stands at the function and at the innermost open call, there is
// nothing to do for this one, and to `slow` if there is more to do than to record it. Else rsi is
// the slot's top, rdx the place, and eax the state within the new call.
.macro ACT framed, slow, pass
  mov r8, [rip + agent_control + CONTROL_ACTIONS]
  test r8, r8
  jz \slow
  cmp [rcx + SLOT_ACTIONS], r8
  jne \slow
  mov esi, [rsp + SAVED + 8]
  cmp esi, [r8 + ACTIONS_FUNCTIONS]
  jae 14f
  cmp dword ptr [r8 + ACTIONS_OFFSETS + rsi * 4], 0
  jne \slow
14:
  cmp dword ptr [rcx + SLOT_PARKED_USED], 0
  jne \slow
  mov rsi, [rcx + SLOT_TOP]
  cmp rsi, [rcx + SLOT_LIMIT]
  jae \slow
  PLACE \framed
  cmp [rsi - CALL_SIZE + CALL_PLACE], rdx
  jbe \slow
  mov eax, [rsi - CALL_SIZE + CALL_STATE]
  test eax, STATE_PASSES
  jnz \pass
  test eax, STATE_SLOW
  jnz \slow
  cmp dword ptr [rip + agent_control + CONTROL_TRACING_OFF], 0
  jne \pass
  and eax, STATE_INHERITED
  inc eax
.endm

// rdx: where the return address of the function that is entered stands.
.macro PLACE framed
  .if \framed
  lea rdx, [rbp + 8]
  .else
  lea rdx, [rsp + SAVED + 16]
  .endif
.endm

// On entry:  [rsp] to the stub, [rsp+8] the function, and unless framed [rsp+16] is the place.
.macro ENTER acting, framed, return_point, pass
  SAVE
  cmp dword ptr [rip + agent_control + CONTROL_RECORDING], 0
  je 12f
  FIND_SLOT 13f
  .if \acting
  ACT \framed, 11f, 12f
  .endif
  cmp qword ptr [rcx + SLOT_BUSY], 0
  jne 11f
  mov [rcx + SLOT_BUSY], rsp
  .if \acting
  mov [rsi + CALL_STATE], eax
  .else
  mov rsi, [rcx + SLOT_TOP]
  cmp rsi, [rcx + SLOT_LIMIT]
  jae 10f
  PLACE \framed
  cmp [rsi - CALL_SIZE + CALL_PLACE], rdx
  jbe 10f
  .endif
  mov [rsi + CALL_PLACE], rdx
  mov rax, [rdx]
  mov [rsi + CALL_RETURN_ADDRESS], rax
  mov r8d, [rsp + SAVED + 8]
  .if \acting
  mov [rsi + CALL_FUNCTION], r8d
  .else
  mov [rsi + CALL_FUNCTION], r8
  .endif
  mov r8, [rsp + SAVED]
  add r8, \return_point
  mov [rsi + CALL_RETURN_POINT], r8
  rdtsc
  shl rdx, 32
  or rax, rdx
  mov [rsi + CALL_START], rax
  add rsi, CALL_SIZE
  mov [rcx + SLOT_TOP], rsi
  .if \framed
  mov [rbp + 8], r8
  .endif
  mov qword ptr [rcx + SLOT_BUSY], 0
  RESTORE
  ret

10:
  mov qword ptr [rcx + SLOT_BUSY], 0
11:
  mov r8, rcx
  PLACE \framed
  mov rax, rdx
  mov ecx, [rsp + SAVED + 8]
  mov rdx, [rsp + SAVED]
  add rdx, \return_point
  SAVE_REST
  mov rdi, rax
  mov esi, ecx
  mov r9, r8
  mov r8, rbp
  .if \framed
  mov ecx, 1
  .else
  xor ecx, ecx
  .endif
  call agent_enter_slowly
  RESTORE_REST
  test eax, eax
  jz 12f
  RESTORE
  ret
12:
  add qword ptr [rsp + SAVED], \pass
  RESTORE
  ret
13:
  xor ecx, ecx
  jmp 11b
.endm

  .p2align 5
agent_enter:
  ENTER 0, 0, STUB_RETURN_POINT, STUB_PASS

  .p2align 5
agent_enter_framed:
  ENTER 0, 1, FRAMED_RETURN_POINT, FRAMED_PASS

// The same where functions have actions (action_table.h). There is no second agent_leave: a call
// about which there is something to do when it returns is marked as not for the short way.
  .p2align 5
agent_enter_acting:
  ENTER 1, 0, STUB_RETURN_POINT, STUB_PASS

  .p2align 5
agent_enter_framed_acting:
  ENTER 1, 1, FRAMED_RETURN_POINT, FRAMED_PASS

// On entry: [rsp] to the stub, [rsp+8] the place, whose content is gone.
  .p2align 5
agent_leave:
  SAVE
  cmp dword ptr [rip + agent_control + CONTROL_TID_OFFSET], 0
  jl 24f  // rdtsc might be fatal
  rdtsc
  shl rdx, 32
  or rax, rdx
  FIND_SLOT 23f
  cmp qword ptr [rcx + SLOT_BUSY], 0
  jne 21f
  mov [rcx + SLOT_BUSY], rsp
  mov rsi, [rcx + SLOT_TOP]
  lea rdx, [rsp + SAVED + 8]
  cmp [rsi - CALL_SIZE + CALL_PLACE], rdx
  jne 20f
  mov edx, [rsi - CALL_SIZE + CALL_FUNCTION]
  cmp edx, CALL_BITS
  jae 20f
  mov r8, rax
  sub r8, [rcx + SLOT_BASE]
  shr r8, 32
  jne 20f
  mov r8, [rcx + SLOT_WRITE]
  cmp r8, [rcx + SLOT_WRITE_LIMIT]
  jae 20f
  or edx, HEAD_CALL
  mov [r8], edx
  mov rdx, [rsi - CALL_SIZE + CALL_START]
  cmp rax, rdx
  jb 20f
  sub rax, rdx
  sub rdx, [rcx + SLOT_BASE]
  mov [r8 + 4], edx
  mov [r8 + 8], eax
  cmp rax, [rip + agent_control + CONTROL_MIN_DURATION]
  jb 22f
  add r8, 12
  mov [rcx + SLOT_WRITE], r8
  sub r8, [rcx + SLOT_CHUNK_WORDS]
  mov rdx, [rcx + SLOT_CHUNK]
  mov [rdx + CHUNK_USED], r8d
22:
  mov rdx, [rsi - CALL_SIZE + CALL_RETURN_ADDRESS]
  mov [rsp + SAVED + 8], rdx
  sub rsi, CALL_SIZE
  mov [rcx + SLOT_TOP], rsi
  mov qword ptr [rcx + SLOT_BUSY], 0
  RESTORE
  ret

20:
  mov qword ptr [rcx + SLOT_BUSY], 0
21:
  mov r8, rcx
  lea rcx, [rsp + SAVED + 8]
  mov rsi, [rsp + SAVED]
  sub rsi, STUB_LEFT
  mov rdx, rax
  SAVE_REST
  mov rdi, rcx
  mov rcx, rbp
  call agent_leave_slowly
  RESTORE_REST
  mov [rsp + SAVED + 8], rax
  RESTORE
  ret
24:
  xor eax, eax
23:
  xor ecx, ecx
  jmp 21b

// On entry: [rsp] to the stub, [rsp+8] where the unwinder, __cxa_begin_catch or the dynamic linker's
// function will return to.
.macro AROUND function
  SAVE
  SAVE_REST
  lea rdi, [rbp + SAVED_REST + SAVED + 8]
  call \function
  RESTORE_REST
  RESTORE
  ret
.endm
agent_before_unwind:
  AROUND agent_restore_returns
agent_after_catch:
  AROUND agent_hijack_returns
agent_libraries:
  AROUND agent_libraries_changed
agent_before_end:
  AROUND agent_program_ends
agent_before_exec:
  AROUND agent_program_executes

// On entry: [rsp] to the stub, [rsp+8] which function it is (tracedata::Setter).
agent_before_setting:
  SAVE
  SAVE_REST
  mov edi, [rbp + SAVED_REST + SAVED + 8]
  mov rsi, rbp
  call agent_program_sets
  RESTORE_REST
  RESTORE
  ret

// As the C library's, by whose bytes unwinders know a signal frame.
  .globl agent_trap_return
agent_trap_return:
  mov rax, 15
  syscall

  .section .note.GNU-stack, "", @progbits
