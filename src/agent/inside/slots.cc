// Which slot is whose.
#include "agent/inside/agent.h"
#include "agent/inside/offsets.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

struct Self {
  uint64_t key;  // thread pointer, or what stands in for it; kTombstone: it cannot be known
  uint32_t tid;
};

Self WhoAmI() {
  const uint32_t offset = agent_control.tid_offset;
  if (offset == tracedata::kNoTidOffset) {
    if (MayCallNothing()) return {kTombstone, 0};
    const uint32_t tid = Gettid();
    return {uint64_t{tid} << 8, tid};
  }
  Self self;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(self.key));
  __asm__ volatile("movl %%fs:(%1), %0" : "=r"(self.tid) : "r"(uint64_t{offset}));
  return self;
}

uint32_t FirstEntry(uint64_t key) {
  return static_cast<uint32_t>((key * DIRECTORY_HASH) >> DIRECTORY_SHIFT);
}
DirectoryEntry& EntryAfter(uint32_t first, uint32_t steps) {
  return agent_directory[(first + steps) % tracedata::kDirectoryEntries];
}

DirectoryEntry* FindEntry(uint64_t key) {
  const uint32_t first = FirstEntry(key);
  for (uint32_t i = 0; i < tracedata::kDirectoryEntries; ++i) {
    DirectoryEntry& entry = EntryAfter(first, i);
    const uint64_t at = __atomic_load_n(&entry.thread_pointer, __ATOMIC_ACQUIRE);
    if (at == key) return &entry;
    if (at == 0) return nullptr;
  }
  return nullptr;
}

// There are more entries than slots, so there is one.
void AddEntry(const Self& self, uint32_t slot) {
  const uint32_t first = FirstEntry(self.key);
  for (uint32_t i = 0; i < tracedata::kDirectoryEntries; ++i) {
    DirectoryEntry& entry = EntryAfter(first, i);
    if (entry.thread_pointer > kTombstone) continue;
    entry.tid = self.tid;
    entry.slot = slot;
    __atomic_store_n(&entry.thread_pointer, self.key, __ATOMIC_RELEASE);
    return;
  }
}

constexpr uint32_t kBeingMarked = 2;

// In a forked child: its memory is a copy, but the chunks are its parent's. The one thread that
// there is keeps its open calls; what the others had open may still be returned to by fibers.
void BecomeChild(const Self& self) {
  // The one thread there is has its process's number.
  agent_control.pid = MayCall() ? Getpid() : self.tid;
  ++agent_control.fork_generation;
  agent_control.slot_lock.store(0, std::memory_order_relaxed);
  agent_control.gave_up_at.store(0, std::memory_order_relaxed);
  for (uint32_t i = 0; i < agent_control.slots_used; ++i) {
    ThreadSlot& slot = agent_slots[i];
    ForgetChunk(slot);
    for (uint32_t& lost : slot.lost) lost = 0;
    if (slot.thread_pointer == self.key) {
      slot.tid = self.tid;
      AddEntry(self, i);
    } else {
      slot.tid = kNoTid;
      slot.thread_pointer = kTombstone;
      slot.busy = 0;
    }
  }
}

void NoteFork(const Self& self) {
  if (agent_control.fork_mark_set.load(std::memory_order_acquire) == 0) return;
  auto& mark = agent_fork_mark;
  uint32_t seen = 0;
  if (mark.load(std::memory_order_acquire) == tracedata::kForkMarked) return;
  if (mark.compare_exchange_strong(seen, kBeingMarked)) {
    BecomeChild(self);
    mark.store(tracedata::kForkMarked, std::memory_order_release);
    return;
  }
  while (mark.load(std::memory_order_acquire) != tracedata::kForkMarked) Yield();
}

// Holds slot_lock, with all signals blocked: a handler that wanted it would wait for ever. Where
// they may not be blocked, it is not waited for long; or not at all, as is asked for.
class SlotLock {
 public:
  explicit SlotLock(bool waits) : blocks_signals_(MayCall()) {
    const uint64_t all = ~uint64_t{0};
    if (blocks_signals_) {
      SystemCall(__NR_rt_sigprocmask, kSetSignals, AddressOf(&all), AddressOf(&before_),
                 kSignalSetSize);
    }
    for (int i = 0; agent_control.slot_lock.exchange(1, std::memory_order_acquire) != 0; ++i) {
      if (!waits || (!blocks_signals_ && i == kTries)) return;
      Yield();
    }
    held_ = true;
  }
  ~SlotLock() {
    if (held_) agent_control.slot_lock.store(0, std::memory_order_release);
    // What was blocked must not stay so. (A filter that another thread puts on all threads in just
    // this moment might be fatal at it.)
    if (blocks_signals_) {
      SystemCall(__NR_rt_sigprocmask, kSetSignals, AddressOf(&before_), 0, kSignalSetSize);
    }
  }
  SlotLock(const SlotLock&) = delete;
  SlotLock& operator=(const SlotLock&) = delete;

  [[nodiscard]] bool held() const { return held_; }

 private:
  static constexpr int kTries = 1000;

  bool blocks_signals_;
  bool held_ = false;
  uint64_t before_ = 0;
};

// The slot's thread has ended. What it had open may be a fiber's that goes on in another thread.
void Retire(ThreadSlot& slot) {
  const uint64_t now = Ticks();
  slot.no_chunk_at = tracedata::kNoMoreChunks;
  ParkBelow(slot, kHighestPlace, now);
  FinishStream(slot, now);
  for (uint32_t& lost : slot.lost) lost = 0;  // PoolHeader::losses has them
}

void Begin(ThreadSlot& slot, const Self& self) {
  slot.thread_pointer = self.key;
  slot.calls[0].place = kHighestPlace;
  SetTop(slot, slot.calls + 1);
  slot.limit = EndOfCalls(slot);
  slot.busy = 0;
  slot.unwinding = 0;
  slot.actions = 0;
  slot.sequence = 0;
  ForgetChunk(slot);
  for (uint32_t& lost : slot.lost) lost = 0;
  slot.tid = self.tid;
}

bool HasEnded(const ThreadSlot& slot) {
  if (slot.tid == kNoTid) return true;
  return MayCall() && SystemCall(__NR_tkill, slot.tid, 0) == kNoSuchProcess;
}

// A slot that nobody has; kThreadSlots if there is none.
uint32_t FreeSlot() {
  if (agent_control.slots_used < tracedata::kThreadSlots) {
    return __atomic_fetch_add(&agent_control.slots_used, 1, __ATOMIC_RELEASE);
  }
  for (uint32_t i = 0; i < tracedata::kThreadSlots; ++i) {
    ThreadSlot& slot = agent_slots[i];
    if (!HasEnded(slot)) continue;
    Retire(slot);
    if (DirectoryEntry* entry = FindEntry(slot.thread_pointer); entry && entry->slot == i) {
      __atomic_store_n(&entry->thread_pointer, kTombstone, __ATOMIC_RELEASE);
    }
    return i;
  }
  return tracedata::kThreadSlots;
}

ThreadSlot* SlotOf(const Self& self) {
  if (self.key == kTombstone) return nullptr;
  const DirectoryEntry* entry = FindEntry(self.key);
  return entry && entry->tid == self.tid ? &agent_slots[entry->slot] : nullptr;
}

// How many ticks nobody looks for a slot after there was none.
constexpr uint64_t kLookAgain = uint64_t{1} << 26;

ThreadSlot* TakeSlot(const Self& self) {
  const uint64_t none_at = agent_control.no_slot_at.load(std::memory_order_relaxed);
  if (none_at != 0 && Ticks() - none_at < kLookAgain) return nullptr;
  if (self.key == kTombstone) return nullptr;
  // Where there was none, one thread's look is enough: it takes long, and the others would queue
  // up.
  const SlotLock lock(/*waits=*/none_at == 0);
  if (!lock.held()) {
    agent_control.no_slot_at.store(Ticks(), std::memory_order_relaxed);
    return nullptr;
  }
  const uint64_t seen_at = agent_control.no_slot_at.load(std::memory_order_relaxed);
  if (seen_at != none_at && Ticks() - seen_at < kLookAgain) return nullptr;
  if (DirectoryEntry* entry = FindEntry(self.key)) {
    // The thread whose control block this was has ended.
    ThreadSlot& slot = agent_slots[entry->slot];
    Retire(slot);
    Begin(slot, self);
    entry->tid = self.tid;
    return &slot;
  }
  const uint32_t free = FreeSlot();
  agent_control.no_slot_at.store(free == tracedata::kThreadSlots ? Ticks() : 0,
                                 std::memory_order_relaxed);
  if (free == tracedata::kThreadSlots) return nullptr;
  Begin(agent_slots[free], self);
  AddEntry(self, free);
  return &agent_slots[free];
}

struct SignalStack {
  uint64_t start = 0;
  int32_t flags = 0;
  uint64_t size = 0;
};
constexpr int32_t kOnStack = 1;  // SS_ONSTACK

}  // namespace

uint32_t OwnTid() { return WhoAmI().tid; }

ThreadSlot* FindSlot() {
  const Self self = WhoAmI();
  NoteFork(self);
  return SlotOf(self);
}

ThreadSlot* FindOrTakeSlot() {
  const Self self = WhoAmI();
  NoteFork(self);
  if (ThreadSlot* slot = SlotOf(self)) return slot;
  return TakeSlot(self);
}

void FinishEnded() {
  if (!MayCall()) return;  // who has ended cannot be known
  const SlotLock lock(/*waits=*/true);
  for (uint32_t i = 0; i < agent_control.slots_used; ++i) {
    ThreadSlot& slot = agent_slots[i];
    if (slot.chunk == 0 || !HasEnded(slot)) continue;
    Retire(slot);
    slot.tid = kNoTid;
  }
}

bool OnOtherSignalStack(uint64_t place) {
  if (!MayCall()) return false;
  SignalStack stack;
  if (SystemCall(__NR_sigaltstack, 0, AddressOf(&stack)) < 0) return false;
  if ((stack.flags & kOnStack) == 0) return false;
  return place < stack.start || place - stack.start > stack.size;
}

bool Seize(ThreadSlot& slot, uint64_t place, uint64_t sp) {
  const uint64_t busy = __atomic_load_n(&slot.busy, __ATOMIC_RELAXED);
  if (busy != 0 && (busy >= place || !MayCall() || OnOtherSignalStack(busy))) return false;
  __atomic_store_n(&slot.busy, sp, __ATOMIC_RELAXED);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return true;
}

}  // namespace stackreel::agent
