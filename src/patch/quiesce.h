// Where a thread must go before a site's bytes may change. Pure, and without allocation: a tracer
// asks for each stopped thread, an agent for the thread that it runs on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.h"
#include "patch/site.h"

namespace stackreel::patch {

// One place where a thread is or will go on: its registers, or a context in a signal frame on its
// stack.
struct CodePosition {
  Avma ip;
  // The thread met an int3 that no handler has decided on: registers with a SIGTRAP of si_code
  // SI_KERNEL to be delivered, or the frame of such a signal whose ip its handler did not change.
  // (Kernels since 5.0 deliver it before any other signal, so no other frame can hold such an ip.)
  bool trap_pending = false;
  // It is in a system call that the kernel may restart: by setting it back to the `syscall`
  // instruction, 2 bytes before ip. (Not so in a signal frame: the kernel has done it by then.)
  bool may_restart = false;
};

enum class ClearAction : uint8_t {
  kLeave,  // it is not inside
  kMove,   // set its ip to `to`
  kDefer,  // it is inside and has no place to go: leave the site alone for now
};
struct ClearDecision {
  ClearAction action = ClearAction::kLeave;
  Avma to;
  size_t site = 0;  // index; of no meaning for kLeave
};

// Whether threads can be inside a site's original (so that it must be cleared before its tail is
// written), or on the landing of its patched form (before what is aside is restored).
[[nodiscard]] bool NeedsClearing(const Site& site, Form inside);

// `sites` are sorted by begin() and do not overlap; each is looked up in O(log n). `inside` says
// which form is being left. For kOriginal the head of each is a trap (or all threads are stopped),
// and threads inside go on out of line; for kPatched the head is the original's again, and threads
// go back to it.
// Positions that are left: at the first byte, whatever stands there; behind the last (a return
// address of a call that ends the site, a system call of which nothing is inside); directly behind
// the trap that the head is, if it was met: the handler will find its entry.
[[nodiscard]] ClearDecision DecideClearing(const CodePosition& position,
                                           std::span<const Site* const> sites, Form inside);

}  // namespace stackreel::patch
