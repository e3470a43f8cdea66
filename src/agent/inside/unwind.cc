// Unwinders walk the stack by its return addresses, so they must find the true ones there.
#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

using tracedata::kRestored;

constexpr uint64_t kPageMask = 4095;
// A stack is mapped from where it is used now to its end, which the kernel's own limit for the
// first one makes likely to be no nearer for calls that are open.
constexpr uint64_t kNearOnStack = 8 << 20;

// Of the calls that were parked, too: their fiber may be the one that unwinds. That they were left
// has been said, so they need not come back to their stubs.
void RestoreParked(ThreadSlot& slot, ReadablePages& pages) {
  if (slot.parked_used == 0) return;
  // Newest first, as tail calls return to one another.
  bool again = true;
  while (again) {
    again = false;
    for (OpenCall& call : slot.parked) {
      const uint64_t place = call.place;
      if (place <= kTombstone || !pages.Contains(place)) continue;
      if (WordAt(place) != call.return_point) continue;
      WordAt(place) = call.return_address;
      Unpark(slot, call);
      again = true;
    }
  }
}

}  // namespace

bool ReadablePages::Contains(uint64_t place) {
  const uint64_t page = place & ~kPageMask;
  if (page == page_) return true;
  if (!MayCall()) return place - AddressOf(__builtin_frame_address(0)) < kNearOnStack;
  // The kernel reads the set before it sees that there is no such operation.
  constexpr uint64_t kNoOperation = 0x7fff'ffff;
  if (SystemCall(__NR_rt_sigprocmask, kNoOperation, page, 0, kSignalSetSize) == kBadAddress) {
    return false;
  }
  page_ = page;
  return true;
}

void HijackAgain(ThreadSlot& slot, uint64_t place, uint64_t now) {
  slot.unwinding = 0;
  slot.limit = EndOfCalls(slot);
  ReadablePages pages;
  while (Top(slot) - 1 > slot.calls) {
    OpenCall* call = Top(slot) - 1;
    const bool gone = call->place != 0 && call->place <= place && (call->function & kRestored) != 0;
    if (!gone && call->place != 0) break;
    if (gone) WriteLeft(slot, *call, now);
    SetTop(slot, call);
  }
  for (OpenCall* call = slot.calls + 1; call < Top(slot); ++call) {
    if (call->place == 0 || (call->function & kRestored) == 0) continue;
    if (pages.Contains(call->place) && WordAt(call->place) == call->return_address) {
      call->function &= ~kRestored;
      WordAt(call->place) = call->return_point;
    } else {
      WriteLeft(slot, *call, now);
      call->place = 0;
    }
  }
}

extern "C" void agent_restore_returns(uint64_t place) {
  ThreadSlot* slot = FindSlot();
  if (slot == nullptr) return;
  // Even if this thread's slot is busy: that is a signal handler's doing, which has interrupted a
  // change of the topmost call only, and that one has its stub's address not yet or no more.
  ReadablePages pages;
  for (OpenCall* call = Top(*slot) - 1; call > slot->calls; --call) {
    if (call->place == 0 || (call->function & kRestored) != 0) continue;
    if (!pages.Contains(call->place) || WordAt(call->place) != call->return_point) continue;
    call->function |= kRestored;
    WordAt(call->place) = call->return_address;
  }
  RestoreParked(*slot, pages);
  slot->unwinding = place;
  slot->limit = 0;
}

extern "C" void agent_hijack_returns(uint64_t place) {
  ThreadSlot* slot = FindSlot();
  if (slot == nullptr || slot->unwinding == 0) return;
  if (!Seize(*slot, place, AddressOf(__builtin_frame_address(0)))) return;
  HijackAgain(*slot, place, Ticks());
  Release(*slot);
}

}  // namespace stackreel::agent
