// What the short ways in entry.S leave over.
#include "agent/inside/agent.h"

namespace stackreel::agent {
namespace {

// Makes calls[] ready for a call at `place`: what stands at or below it was left, was parked, or
// makes a tail call. False if the call must not be recorded.
bool MakeWay(ThreadSlot& slot, uint64_t place) {
  // The time is asked for where it is needed: rdtsc is half of what a call costs.
  if (slot.unwinding != 0 && place >= slot.unwinding) HijackAgain(slot, place, Ticks());
  const OpenCall* top = Top(slot) - 1;
  const bool nests = top->place >= place || (top->place != 0 && OnOtherSignalStack(top->place));
  if (!nests && !ParkBelow(slot, place, Ticks())) return false;
  OpenCall* equal = Top(slot) - 1;
  while (equal->place == place && WordAt(place) != equal->return_point &&
         (equal->function & tracedata::kRestored) == 0) {
    WriteLeft(slot, *equal, Ticks());
    SetTop(slot, equal);
    --equal;
  }
  return slot.top < EndOfCalls(slot);
}

// Takes the call away from whoever has it, which may be another thread. False if it was faster.
bool Claim(OpenCall& call, uint64_t place, uint64_t left) {
  return __atomic_compare_exchange_n(&call.place, &place, left, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

struct Found {
  OpenCall* call = nullptr;
  ThreadSlot* slot = nullptr;
  bool parked = false;
};
void Consider(Found& found, OpenCall* call, ThreadSlot& slot, bool parked) {
  if (call == nullptr) return;
  if (found.call != nullptr && found.call->start >= call->start) return;
  found = {call, &slot, parked};
}

OpenCall* FindOpen(ThreadSlot& slot, uint64_t place, uint64_t return_point) {
  for (OpenCall* call = Top(slot) - 1; call > slot.calls; --call) {
    if (__atomic_load_n(&call->place, __ATOMIC_ACQUIRE) == place &&
        call->return_point == return_point) {
      return call;
    }
  }
  return nullptr;
}

// The newest call with this place, of any thread. A thread moves calls from calls[] to parked, so
// that is the order to look in.
Found FindAnywhere(uint64_t place, uint64_t return_point) {
  Found found;
  const uint32_t used = __atomic_load_n(&agent_control.slots_used, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < used && i < tracedata::kThreadSlots; ++i) {
    ThreadSlot& slot = agent_slots[i];
    if (slot.top == 0) continue;
    Consider(found, FindOpen(slot, place, return_point), slot, false);
    if (slot.parked_used != 0) Consider(found, FindParked(slot, place, return_point), slot, true);
  }
  return found;
}

// Where a call that is not on this thread's calls[] returns to. Nothing is written for it: that it
// was left has been said, or its thread will say so.
uint64_t ReturnFromElsewhere(ThreadSlot* own, uint64_t place, uint64_t return_point) {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    const Found found = FindAnywhere(place, return_point);
    if (found.call == nullptr) {
      // It may just be on its way from one table to another.
      if (i > 2) break;
      Yield();
      continue;
    }
    const uint64_t return_address = found.call->return_address;
    if (!Claim(*found.call, place, found.parked ? kTombstone : 0)) continue;
    return return_address;
  }
  // It returned before: setjmp, vfork. What was above the top may still be there.
  const OpenCall* newest = nullptr;
  if (own != nullptr) {
    for (const OpenCall* call = own->calls + 1; AddressOf(call) < EndOfCalls(*own); ++call) {
      if (call->place != place || call->return_point != return_point) continue;
      if (newest == nullptr || call->start > newest->start) newest = call;
    }
  }
  if (newest == nullptr) __builtin_trap();
  return newest->return_address;
}

uint64_t Leave(ThreadSlot& slot, uint64_t place, uint64_t return_point, uint64_t end,
               const SavedRegisters& registers) {
  OpenCall* call = FindOpen(slot, place, return_point);
  if (call == nullptr) return ReturnFromElsewhere(&slot, place, return_point);
  // What was called later and lies below has been left, or is a fiber's.
  while (Top(slot) - 1 > call) {
    OpenCall* above = Top(slot) - 1;
    if (above->place != 0) {
      WriteLeft(slot, *above, end);
      const bool may_return = (above->function & tracedata::kRestored) == 0;
      if (may_return && !Park(slot, *above)) break;
    }
    SetTop(slot, above);
  }
  const uint64_t return_address = call->return_address;
  WriteReturn(slot, *call, end, registers);
  if (Top(slot) - 1 == call) {
    SetTop(slot, call);
  } else {
    call->place = 0;
  }
  return return_address;
}

}  // namespace

// 1: recorded, or open for what it means for others. 0: the function is entered as if nothing were.
// `slot` is this thread's, null where it has not been found.
extern "C" uint64_t agent_enter_slowly(uint64_t place, uint64_t function, uint64_t return_point,
                                       uint64_t framed, const SavedRegisters* registers,
                                       ThreadSlot* slot) {
  if (slot == nullptr) slot = FindOrTakeSlot();
  if (slot == nullptr) {
    CountForAll(LossReason::kNoThread, place >> 16);
    return 0;
  }
  if (!Seize(*slot, place, AddressOf(__builtin_frame_address(0)))) {
    Count(*slot, LossReason::kInterrupted);
    return 0;
  }
  const bool has_room = MakeWay(*slot, place);
  const CallPlan plan = PlanCall(*slot, static_cast<uint32_t>(function), place);
  if (!plan.opens || !has_room) {
    if (plan.opens && (plan.state & tracedata::kSilent) == 0) Count(*slot, LossReason::kTooDeep);
    Release(*slot);
    return 0;
  }
  if (plan.leads_here) Unhold(*slot, Ticks());
  OpenCall* call = Top(*slot);
  call->return_address = WordAt(place);
  call->return_point = return_point;
  call->function = static_cast<uint32_t>(function) | plan.bits;
  call->state = plan.state;
  call->place = place;
  call->start = Ticks();
  SetTop(*slot, call + 1);
  if (plan.values != nullptr && plan.values->arguments != 0) {
    WriteArguments(*slot, *call, *plan.values, *registers, place);
  }
  if (framed != 0) WordAt(place) = return_point;
  Release(*slot);
  return 1;
}

// The address that the function returns to. `slot` as above.
extern "C" uint64_t agent_leave_slowly(uint64_t place, uint64_t return_point, uint64_t end,
                                       const SavedRegisters* registers, ThreadSlot* slot) {
  if (end == 0) end = Ticks();  // entry.S has not read the time
  if (slot == nullptr) slot = FindSlot();
  if (slot == nullptr) return ReturnFromElsewhere(nullptr, place, return_point);
  if (!Seize(*slot, place, AddressOf(__builtin_frame_address(0)))) {
    // A signal handler that interrupted this thread's agent has gone on with another stack.
    Count(*slot, LossReason::kInterrupted);
    return ReturnFromElsewhere(slot, place, return_point);
  }
  const uint64_t return_address = Leave(*slot, place, return_point, end, *registers);
  Release(*slot);
  return return_address;
}

}  // namespace stackreel::agent
