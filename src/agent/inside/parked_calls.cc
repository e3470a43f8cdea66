// Calls that may have been left, or be a fiber's that comes back: a table of each thread, which
// other threads search too, as fibers migrate. Only its thread adds; who takes one out does so by a
// compare-and-exchange of its place.
#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

using tracedata::kParkedCalls;

constexpr uint32_t kMostUsed = kParkedCalls - kParkedCalls / 4;
// Looking for dead ones takes a system call each: done once in so many refusals.
constexpr uint32_t kSweepEvery = 1024;

uint32_t FirstOf(uint64_t place) {
  return static_cast<uint32_t>(((place >> 3) * 0x9e3779b97f4a7c15) >> 40) % kParkedCalls;
}
OpenCall& At(ThreadSlot& slot, uint32_t first, uint32_t steps) {
  return slot.parked[(first + steps) % kParkedCalls];
}
uint64_t PlaceOf(const OpenCall& call) { return __atomic_load_n(&call.place, __ATOMIC_ACQUIRE); }

// The end of a chain gives its tombstones back. (Whoever searches it at the same time finds its end
// a little earlier, but nothing behind.)
void ShortenChain(ThreadSlot& slot, uint32_t i) {
  if (PlaceOf(slot.parked[(i + 1) % kParkedCalls]) != 0) return;
  while (PlaceOf(slot.parked[i]) == kTombstone) {
    __atomic_store_n(&slot.parked[i].place, 0, __ATOMIC_RELEASE);
    --slot.parked_used;
    i = (i + kParkedCalls - 1) % kParkedCalls;
  }
}

// Whether the stack's word is neither what a live call has there nor what it had before.
bool IsDead(const OpenCall& call) {
  if (!MayCall()) return false;
  uint64_t word = 0;
  struct {
    uint64_t base, length;
  } local = {AddressOf(&word), sizeof(word)}, remote = {call.place, sizeof(word)};
  const int64_t got = SystemCall(__NR_process_vm_readv, agent_control.pid, AddressOf(&local), 1,
                                 AddressOf(&remote), 1);
  if (got == kBadAddress) return true;
  return got == sizeof(word) && word != call.return_point && word != call.return_address;
}

void Sweep(ThreadSlot& slot) {
  for (uint32_t i = 0; i < kParkedCalls; ++i) {
    OpenCall& call = slot.parked[i];
    const uint64_t place = PlaceOf(call);
    if (place > kTombstone && IsDead(call)) Unpark(slot, call);
  }
  for (uint32_t i = 0; i < kParkedCalls; ++i) ShortenChain(slot, i);
}

// Takes out those of `call`'s place that cannot be returned to any more. False if the call itself
// is one. A word of a stack is the return address of one live call at a time, but for tail calls:
// there the newer one returns to the older one's stub.
bool ReplaceOlder(ThreadSlot& slot, const OpenCall& call) {
  const uint32_t first = FirstOf(call.place);
  bool newest = true;
  bool linked = false;
  for (uint32_t n = 0; n < kParkedCalls; ++n) {
    const OpenCall& other = At(slot, first, n);
    const uint64_t place = PlaceOf(other);
    if (place == 0) break;
    if (place != call.place) continue;
    const bool newer = other.start > call.start;
    newest = newest && !newer;
    linked = linked || (newer ? other.return_address == call.return_point
                              : call.return_address == other.return_point);
  }
  if (linked) return true;
  if (!newest) return false;
  for (uint32_t n = 0; n < kParkedCalls; ++n) {
    OpenCall& other = At(slot, first, n);
    const uint64_t place = PlaceOf(other);
    if (place == 0) break;
    if (place == call.place) __atomic_store_n(&other.place, kTombstone, __ATOMIC_RELEASE);
  }
  return true;
}

}  // namespace

bool Park(ThreadSlot& slot, const OpenCall& call) {
  if (!ReplaceOlder(slot, call)) return true;
  if (slot.parked_used >= kMostUsed) {
    if (slot.parked_refused++ % kSweepEvery == 0) Sweep(slot);
    // It was worth it, so it will be the next time.
    if (slot.parked_used < kMostUsed / 2) slot.parked_refused = 0;
  }
  const uint32_t first = FirstOf(call.place);
  for (uint32_t n = 0; n < kParkedCalls; ++n) {
    OpenCall& free = At(slot, first, n);
    const uint64_t place = PlaceOf(free);
    if (place > kTombstone) continue;
    if (place == 0) {
      if (slot.parked_used >= kMostUsed) return false;
      ++slot.parked_used;
    }
    free.return_address = call.return_address;
    free.return_point = call.return_point;
    free.start = call.start;
    free.function = call.function;
    free.state = call.state;
    __atomic_store_n(&free.place, call.place, __ATOMIC_RELEASE);
    return true;
  }
  return false;
}

OpenCall* FindParked(ThreadSlot& slot, uint64_t place, uint64_t return_point) {
  OpenCall* newest = nullptr;
  const uint32_t first = FirstOf(place);
  for (uint32_t n = 0; n < kParkedCalls; ++n) {
    OpenCall& call = At(slot, first, n);
    const uint64_t at = PlaceOf(call);
    if (at == 0) break;
    if (at != place || call.return_point != return_point) continue;
    if (newest == nullptr || call.start > newest->start) newest = &call;
  }
  return newest;
}

void Unpark(ThreadSlot& slot, OpenCall& call) {
  __atomic_store_n(&call.place, kTombstone, __ATOMIC_RELEASE);
  ShortenChain(slot, static_cast<uint32_t>(&call - slot.parked));
}

bool ParkBelow(ThreadSlot& slot, uint64_t place, uint64_t now) {
  while (true) {
    OpenCall* call = Top(slot) - 1;
    const uint64_t at = PlaceOf(*call);
    if (at >= place || call == slot.calls) return true;
    if (at != 0) {
      WriteLeft(slot, *call, now);
      // Where the true return address stands already, nobody will ask for it.
      const bool may_return = (call->function & tracedata::kRestored) == 0;
      if (may_return && !Park(slot, *call)) return false;
    }
    SetTop(slot, call);
  }
}

}  // namespace stackreel::agent
