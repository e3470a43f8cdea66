// One x86-64 instruction, as patching needs to see it: how long it is, where control goes, and
// which of its bytes depend on where it stands.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace stackreel::x86 {

inline constexpr size_t kMaxInstructionLength = 15;

enum class Flow : uint8_t {
  kNext,             // to the next instruction (syscall and int n too)
  kJump,             // to a place that the instruction states
  kConditionalJump,  // there or to the next: jcc, jrcxz, loop, and xbegin (there on abort)
  kIndirectJump,     // to a place from a register or memory
  kCall,             // a call of a place that the instruction states
  kIndirectCall,     // a call of a place from a register or memory
  kReturn,           // ret, iret, sysret
  kStop,             // nowhere: ud0, ud1, ud2, int1, int3, hlt
};

// A number in the instruction that counts from the instruction's end.
struct RelativeField {
  uint8_t offset = 0;  // of its first byte
  uint8_t size = 0;    // in bytes: 1, 2 or 4; 0 if the instruction has no such field
  int32_t value = 0;
};

struct Instruction {
  uint8_t length = 0;
  Flow flow = Flow::kNext;
  RelativeField branch;  // of kJump, kConditionalJump and kCall: where they go
  RelativeField memory;  // the displacement of a rip-relative memory operand
  // The memory operand's address wraps at 4 GiB (address-size prefix: eip-relative).
  bool wraps_at_4gib = false;
  bool is_lea = false;      // takes the address of its memory operand, and does not touch it
  bool is_nop = false;      // any length and form; not endbr64, pause or prefetch
  bool is_endbr64 = false;  // where indirect branch tracking lets indirect calls arrive
  bool is_loop = false;     // jrcxz, jecxz, loop, loope, loopne: only a short form exists
  bool is_far = false;      // far jump, call or return: changes cs
  bool is_syscall = false;
  // A direct branch with an operand-size prefix that counts: Intel's CPUs ignore it, AMD's cut the
  // target (or the field) to 16 bits. What it does is not known here.
  bool is_cut_on_amd = false;
  uint8_t opcode_offset = 0;  // behind prefixes and escape bytes
  uint8_t modrm_offset = 0;   // 0: none
};

// The first instruction of `bytes`; nothing if they do not begin with a whole valid instruction of
// 64-bit mode (Intel SDM volume 2, AMD APM volume 3), of those that Zydis 4.0 knows: up to AVX-512
// FP16 and AMX, with CET and MPX; not APX.
std::optional<Instruction> Decode(ByteView bytes);

// Where the branch of an instruction that stands at `at` goes, or what its rip-relative operand
// refers to.
constexpr uint64_t TargetOf(const Instruction& instruction, const RelativeField& field,
                            uint64_t at) {
  const uint64_t target = at + instruction.length + static_cast<uint64_t>(int64_t{field.value});
  const bool wraps = instruction.wraps_at_4gib && &field == &instruction.memory;
  return wraps ? target & 0xffffffffU : target;
}

}  // namespace stackreel::x86
