// Copies the first instructions of a function elsewhere, so that they do there what they did here.
#pragma once

#include <array>
#include <cstdint>
#include <expected>
#include <string_view>

#include "base/address.h"
#include "base/bytes.h"
#include "x86/relocation_map.h"

namespace stackreel::x86 {

enum class RelocateRefusal : uint8_t {
  kUndecodable,            // bytes that are no instruction known here
  kTooShort,               // the code ends before at_least bytes are covered
  kOutOfReach,             // more than 2 GiB between the copy and what it refers to
  kBranchIntoInstruction,  // a branch of the piece to the inside of one of its instructions
  kReadsItself,            // an operand inside the piece, which will be overwritten
  kCallReturnsInside,      // a call that is not the piece's last: it would return into the patch
  kShadowStack,            // a call, and the process has a shadow stack
  kCannotRunElsewhere,     // int3, far calls, calls by way of rsp, branches cut to 16 bits
};
std::string_view NameOf(RelocateRefusal refusal);

struct RelocateOptions {
  // The process has a shadow stack. A copied call pushes its return address without a call, so the
  // shadow stack would not know of it and the return would be fatal: such a piece is refused.
  bool has_shadow_stack = false;
};

struct RelocatedCode {
  std::array<uint8_t, kMaxCopyLength> bytes = {};
  RelocationMap map;  // map.original_length() is the piece's length, relocated_length() the copy's
  // Control can arrive behind the copy, so that a jump to `from` + map.original_length() must
  // stand there. (A copied call comes back to the original code by itself.)
  bool falls_through = true;

  [[nodiscard]] ByteView view() const { return {bytes.data(), map.relocated_length()}; }
};

// The most that Relocate can be asked to cover: a jump's length.
inline constexpr size_t kMaxPatchLength = 5;

// The copy, to stand at `to`, of the first whole instructions of `code` (which stands at `from`)
// that cover `at_least` bytes, 0 … kMaxPatchLength. It changes the same registers, flags and memory
// in the same way and leaves for the same places. In particular:
//  * rip-relative operands keep referring to the same address.
//  * jcc, jmp and xbegin are near; loop and jrcxz, which have no near form, become
//      loop taken; jmp short next; taken: jmp TARGET; next:
//  * a branch to an instruction of the piece, its first one too, goes to the copy of it: what was a
//    loop stays one, and does not arrive at the patch again.
//  * a call becomes
//      push [address]; jmp TARGET; address: .quad RETURN ADDRESS OF THE ORIGINAL CALL
//    so that the callee, an unwinder and an exception see the original's return address, and the
//    callee returns to the original code behind the piece. An indirect call likewise. No register
//    is needed. (The CPU's return predictor misses once.) Not under a shadow stack: see
//    RelocateOptions.
// What an instruction leaves of its own address is the copy's: rcx after syscall, the address in a
// saved x87 state, the one that a signal handler sees after a fault.
// A thread between two instructions of such a sequence is at no boundary of the map. It may hold
// only: the branch is decided (loop), or the return address is pushed, which is the state of
// the callee's first instruction.
std::expected<RelocatedCode, RelocateRefusal> Relocate(ByteView code, Avma from, Avma to,
                                                       size_t at_least,
                                                       RelocateOptions options = {});

}  // namespace stackreel::x86
