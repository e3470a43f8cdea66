// Events, and the chunks they go to.
#include "agent/inside/agent.h"

namespace stackreel::agent {
namespace {

using tracedata::ChunkState;
using tracedata::EventHead;
using tracedata::EventKind;
using tracedata::kAnnounced;

// Behind write_limit: kEntry of every open call, and some other events, one with values.
constexpr uint64_t kRoomForEntries = 8 * tracedata::kOpenCalls + 1024 + tracedata::kMaxValueBytes;
// The most that one step of writing takes.
constexpr uint64_t kLongestStep = 64;
constexpr uint64_t kPatience = 1'000'000'000;  // nanoseconds without a chunk becoming free

ChunkHeader& HeaderAt(uint32_t i) {
  return *reinterpret_cast<ChunkHeader*>(agent_control.pool + tracedata::ChunkHeaderOffset(i));
}

// A free chunk, now owned; null if there is none.
ChunkHeader* TakeFree(uint64_t& words) {
  PoolHeader& pool = Pool();
  const uint32_t ready = pool.ready.load(std::memory_order_acquire);
  uint32_t i = pool.hint.load(std::memory_order_relaxed);
  for (uint32_t n = 0; n < ready; ++n, ++i) {
    if (i >= ready) i = 0;
    ChunkHeader& header = HeaderAt(i);
    auto state = static_cast<uint32_t>(ChunkState::kFree);
    if (header.state.load(std::memory_order_relaxed) != state) continue;
    if (!header.state.compare_exchange_strong(state, static_cast<uint32_t>(ChunkState::kOwned),
                                              std::memory_order_acquire)) {
      continue;
    }
    pool.hint.store(i + 1, std::memory_order_relaxed);
    words = agent_control.pool + tracedata::ChunkOffset(pool.chunks, i);
    return &header;
  }
  return nullptr;
}

bool MayWait(uint32_t freed) {
  return agent_control.on_full == tracedata::OnFull::kBlock && agent_control.tracer_pid != 0 &&
         agent_control.gave_up_at.load(std::memory_order_relaxed) != uint64_t{freed} + 1;
}

// The same; waits for one if that is asked for and somebody makes chunks free.
ChunkHeader* AwaitFree(ThreadSlot& slot, uint64_t& words) {
  PoolHeader& pool = Pool();
  uint32_t freed = pool.freed.load(std::memory_order_acquire);
  if (slot.no_chunk_at == tracedata::kNoMoreChunks) return nullptr;
  if (slot.no_chunk_at == uint64_t{freed} + 1) return nullptr;
  WaitingTime waiting;
  while (true) {
    if (ChunkHeader* header = TakeFree(words)) return header;
    FinishEnded();
    if (!MayWait(freed)) break;
    if (waiting.IsOver(kPatience)) {
      agent_control.gave_up_at.store(uint64_t{freed} + 1, std::memory_order_relaxed);
      break;
    }
    pool.waiting.fetch_add(1);
    Await(pool.freed, freed);
    pool.waiting.fetch_sub(1);
    const uint32_t after = pool.freed.load(std::memory_order_acquire);
    if (after != freed) waiting = {};
    freed = after;
  }
  if (slot.no_chunk_at == 0) {
    // What ends from now on is dropped: a gap, and open calls begin anew behind it.
    const uint32_t gap = slot.sequence + 1;
    ForgetChunk(slot);
    slot.sequence = gap;
  }
  slot.no_chunk_at = uint64_t{freed} + 1;
  return nullptr;
}

// Or it is held back, and may have to be told of.
bool MayBeTold(const OpenCall& call) {
  return IsUntold(call) || (call.place != 0 && (call.state & tracedata::kHeld) != 0);
}

// A signal handler may come between any two instructions and leave by siglongjmp: what follows is
// never done then. So `write` is right whenever `chunk` is set, and `write_limit` is 0 whenever
// that is not so; the order of what is stored counts.
void InThisOrder() { std::atomic_signal_fence(std::memory_order_seq_cst); }

// The thread has no chunk any more.
void LetGo(ThreadSlot& slot) {
  slot.write_limit = 0;
  InThisOrder();
  slot.chunk = 0;
  InThisOrder();
  slot.write = 0;
}

// Takes a free chunk, which is the thread's from then on, or the one that was left in the midst of
// this.
ChunkHeader* Take(ThreadSlot& slot) {
  if (slot.taken == 0) {
    uint64_t words = 0;
    ChunkHeader* const header = AwaitFree(slot, words);
    if (header == nullptr) return nullptr;
    slot.chunk_words = words;
    InThisOrder();
    slot.taken = AddressOf(header);
  }
  return reinterpret_cast<ChunkHeader*>(slot.taken);
}

bool TakeChunk(ThreadSlot& slot, uint64_t now) {
  ChunkHeader* const header = Take(slot);
  if (header == nullptr) return false;
  uint64_t base = now;
  for (const OpenCall* call = slot.calls + 1; call < Top(slot); ++call) {
    if (!MayBeTold(*call)) continue;
    if (call->start < base) base = call->start;
    break;
  }
  header->used.store(0, std::memory_order_relaxed);
  header->base = base;
  header->pid = agent_control.pid;
  header->tid = slot.tid;
  header->sequence = slot.sequence++;
  header->fork_generation = agent_control.fork_generation;
  slot.no_chunk_at = 0;
  slot.base = base;
  slot.write = slot.chunk_words;
  InThisOrder();
  // Left in between, it is nobody's until the trace ends: twice the same would be worse.
  slot.taken = 0;
  InThisOrder();
  slot.chunk = AddressOf(header);
  InThisOrder();
  slot.write_limit = slot.chunk_words + tracedata::kChunkSize - kRoomForEntries;
  return true;
}

void Advance(ThreadSlot& slot, uint32_t words) {
  slot.write += uint64_t{4} * words;
  auto* header = reinterpret_cast<ChunkHeader*>(slot.chunk);
  header->used.store(static_cast<uint32_t>(slot.write - slot.chunk_words),
                     std::memory_order_release);
}
void Put(ThreadSlot& slot, uint32_t head, uint32_t second) {
  auto* words = reinterpret_cast<uint32_t*>(slot.write);
  words[0] = head;
  words[1] = second;
  Advance(slot, 2);
}
void Put(ThreadSlot& slot, uint32_t head, uint32_t second, uint32_t third) {
  auto* words = reinterpret_cast<uint32_t*>(slot.write);
  words[0] = head;
  words[1] = second;
  words[2] = third;
  Advance(slot, 3);
}

bool InReach(const ThreadSlot& slot, uint64_t ticks) { return (ticks - slot.base) >> 32 == 0; }
void PutBase(ThreadSlot& slot, uint64_t ticks) {
  Put(slot, EventHead(EventKind::kBase, 0), static_cast<uint32_t>(ticks),
      static_cast<uint32_t>(ticks >> 32));
  slot.base = ticks;
}

void Publish(ThreadSlot& slot) {
  auto* header = reinterpret_cast<ChunkHeader*>(slot.chunk);
  LetGo(slot);
  header->state.store(static_cast<uint32_t>(ChunkState::kFull), std::memory_order_release);
  Pool().filled.fetch_add(1);
  WakeTracer();
}

// Whether a step of writing fits, with that many bytes of values; a chunk that is full to its last
// word is exchanged.
[[gnu::noinline]] bool HasRoomAnew(ThreadSlot& slot, uint64_t now) {
  Publish(slot);
  if (TakeChunk(slot, now)) return true;
  Count(slot, LossReason::kNoSpace);  // by which the reader knows that this gap is ours
  return false;
}
inline bool HasRoom(ThreadSlot& slot, uint64_t now, uint64_t values = 0) {
  if (slot.chunk == 0) return false;
  if (slot.write + kLongestStep + values <= slot.chunk_words + tracedata::kChunkSize) return true;
  return HasRoomAnew(slot, now);
}

// kEntry of every open call that has none. Goes on in a new chunk if there are that many.
void Announce(ThreadSlot& slot, uint64_t now) {
  for (OpenCall* call = slot.calls + 1; call < Top(slot); ++call) {
    if (!IsUntold(*call)) continue;
    if (!HasRoom(slot, now)) return;
    uint64_t start = call->start;
    if (start < slot.base) start = slot.base;
    if (!InReach(slot, start)) PutBase(slot, start);
    Put(slot, EventHead(EventKind::kEntry, FunctionOf(*call)),
        static_cast<uint32_t>(start - slot.base));
    call->function |= kAnnounced;
  }
}

// `ticks` as it is written; a new base is set where it is out of reach.
[[gnu::noinline]] uint32_t DeltaAnew(ThreadSlot& slot, uint64_t ticks) {
  Announce(slot, ticks);
  if (!HasRoom(slot, ticks)) return 0;
  if (!InReach(slot, ticks)) PutBase(slot, ticks);
  return static_cast<uint32_t>(ticks - slot.base);
}
inline uint32_t Delta(ThreadSlot& slot, uint64_t ticks) {
  if (ticks < slot.base) return 0;
  return InReach(slot, ticks) ? static_cast<uint32_t>(ticks - slot.base) : DeltaAnew(slot, ticks);
}

void TellLosses(ThreadSlot& slot, uint64_t now) {
  for (uint8_t reason = 0; reason < tracedata::kLossReasons; ++reason) {
    if (__atomic_load_n(&slot.lost[reason], __ATOMIC_RELAXED) == 0) continue;
    const uint32_t time = Delta(slot, now);
    if (!HasRoom(slot, now)) return;
    const uint32_t count = __atomic_exchange_n(&slot.lost[reason], 0, __ATOMIC_RELAXED);
    Put(slot, EventHead(EventKind::kLost, reason), time, count);
  }
}

void Finish(ThreadSlot& slot, uint64_t now) {
  TellLosses(slot, now);
  Announce(slot, now);
  if (slot.chunk != 0) Publish(slot);
}

// Makes sure of a chunk with room for events; false if there is none, which then is counted.
[[gnu::noinline]] bool PrepareAnew(ThreadSlot& slot, uint64_t now) {
  if (slot.chunk != 0 && slot.write >= slot.write_limit) Finish(slot, now);
  if (slot.chunk == 0) {
    if (!TakeChunk(slot, now)) {
      Count(slot, LossReason::kNoSpace);
      return false;
    }
    TellLosses(slot, now);
  }
  return slot.chunk != 0;
}
inline bool Prepare(ThreadSlot& slot, uint64_t now) {
  if (slot.chunk != 0 && slot.write < slot.write_limit) return true;
  return PrepareAnew(slot, now);
}

// Where the values of an event of so many words stand.
uint8_t* ValuesBehind(const ThreadSlot& slot, uint32_t words) {
  return reinterpret_cast<uint8_t*>(slot.write + uint64_t{4} * (words + 1));
}
// Makes the event at the end one with values; they stand there already. The rest of its words is
// written.
inline void AdvanceOverValues(ThreadSlot& slot, uint32_t words, uint32_t bytes) {
  auto* const event = reinterpret_cast<uint32_t*>(slot.write);
  event[0] |= tracedata::kValuesBit;
  event[words] = bytes;
  for (uint32_t i = bytes; i % 4 != 0; ++i) ValuesBehind(slot, words)[i] = 0;
  Advance(slot, words + 1 + (bytes + 3) / 4);
}

// Of chunks, more than are filled in the time of a call that is too short to be written.
constexpr uint32_t kSequenceMask = (1u << (32 - tracedata::kChunkWordBits)) - 1;
uint32_t EntryMark(const ThreadSlot& slot) {
  const auto word = static_cast<uint32_t>((slot.write - slot.chunk_words) / 4);
  return (slot.sequence & kSequenceMask) << tracedata::kChunkWordBits | word;
}

// Takes the call's kEntry back, if that is what was written last. False if it is not: then what is
// behind it must stay within the call.
bool Unwrite(ThreadSlot& slot, const OpenCall& call) {
  const uint32_t mark = slot.entries[&call - slot.calls];
  const uint32_t sequence = mark >> tracedata::kChunkWordBits;
  if (slot.chunk == 0 || sequence != (slot.sequence & kSequenceMask)) return false;
  const uint64_t start =
      slot.chunk_words + 4 * uint64_t{mark & ((1u << tracedata::kChunkWordBits) - 1)};
  const auto* event = reinterpret_cast<const uint32_t*>(start);
  constexpr uint32_t kWords = EventWords(EventKind::kEntry);
  if (start >= slot.write || event[0] != EventHead(EventKind::kEntry, FunctionOf(call), true) ||
      start + 4 * uint64_t{kWords + 1 + (event[kWords] + 3) / 4} != slot.write) {
    return false;
  }
  slot.write = start;
  Advance(slot, 0);
  return true;
}

}  // namespace

void WriteArguments(ThreadSlot& slot, OpenCall& call, const tracedata::ValueReads& reads,
                    const SavedRegisters& registers, uint64_t place) {
  // What is written before it must not tell of it.
  call.function |= kAnnounced;
  uint32_t time = 0;
  const bool prepared = Prepare(slot, call.start);
  if (prepared) time = Delta(slot, call.start);
  if (!prepared || !HasRoom(slot, call.start, tracedata::kMaxValueBytes)) {
    call.function &= ~kAnnounced;
    return;
  }
  call.function |= kAnnounced;
  constexpr uint32_t kWords = EventWords(EventKind::kEntry);
  const uint32_t bytes = ReadValues(reads, registers, place, true, ValuesBehind(slot, kWords));
  // Reading texts takes long.
  const uint64_t start = reads.texts != 0 ? Ticks() : call.start;
  if (InReach(slot, start)) {
    call.start = start;
    time = static_cast<uint32_t>(start - slot.base);
  }
  slot.entries[&call - slot.calls] = EntryMark(slot);
  auto* const event = reinterpret_cast<uint32_t*>(slot.write);
  event[0] = EventHead(EventKind::kEntry, FunctionOf(call));
  event[1] = time;
  AdvanceOverValues(slot, kWords, bytes);
}

void WriteReturn(ThreadSlot& slot, OpenCall& call, uint64_t end, const SavedRegisters& registers) {
  if ((call.function & tracedata::kLeftBit) != 0) return;
  const uint64_t duration = end < call.start ? 0 : end - call.start;
  const bool acts = (call.function & tracedata::kActs) != 0;
  const bool has_own = (call.state & (tracedata::kDurationMask | tracedata::kKept)) != 0;
  const uint64_t least =
      has_own ? LeastDuration(call) : agent_control.min_duration.load(std::memory_order_relaxed);
  if (duration < least) {
    if ((call.function & kAnnounced) == 0) return;
    if (acts && Unwrite(slot, call)) return;
  }
  if (has_own) KeepCaller(call);
  if (!Prepare(slot, end)) return;
  const uint32_t time = Delta(slot, end);
  const tracedata::ValueReads* reads = acts ? ValuesOf(FunctionOf(call)) : nullptr;
  const bool has_result = reads != nullptr && reads->results != 0;
  if (!HasRoom(slot, end, has_result ? tracedata::kMaxValueBytes : 0)) return;
  auto* const event = reinterpret_cast<uint32_t*>(slot.write);
  const bool announced = (call.function & kAnnounced) != 0;
  const EventKind kind = announced ? EventKind::kExit : EventKind::kCall;
  event[0] = EventHead(kind, FunctionOf(call));
  event[1] = announced ? time : static_cast<uint32_t>(call.start - slot.base);
  if (!announced) event[2] = static_cast<uint32_t>(duration);
  const uint32_t words = EventWords(kind);
  if (has_result) {
    uint8_t* const out = ValuesBehind(slot, words);
    AdvanceOverValues(slot, words, ReadValues(*reads, registers, call.place, false, out));
  } else {
    Advance(slot, words);
  }
}

void WriteLeft(ThreadSlot& slot, OpenCall& call, uint64_t now) {
  call.state &= ~tracedata::kHeld;
  if ((call.function & tracedata::kLeftBit) != 0) return;
  const bool prepared = Prepare(slot, now);
  if (prepared) Announce(slot, now);
  const uint32_t time = prepared ? Delta(slot, now) : 0;
  call.function |= tracedata::kLeftBit;
  if (!prepared || !HasRoom(slot, now)) return;
  if ((call.function & kAnnounced) == 0) return;
  Put(slot, EventHead(EventKind::kLeft, FunctionOf(call)), time);
}

void Unhold(ThreadSlot& slot, uint64_t now) {
  const OpenCall* outermost = nullptr;
  for (OpenCall* call = Top(slot) - 1; call > slot.calls; --call) {
    if (call->place == 0 || (call->state & tracedata::kSilent) != 0) continue;
    if ((call->state & tracedata::kHeld) == 0) break;
    call->state &= ~tracedata::kHeld;
    call->function &= ~tracedata::kLeftBit;
    outermost = call;
  }
  if (outermost == nullptr || outermost->start >= slot.base || !HasRoom(slot, now)) return;
  // Times count from after it began. Of this thread nothing was written that began later: it would
  // have been called by it.
  PutBase(slot, outermost->start);
  Announce(slot, now);
  if (HasRoom(slot, now)) PutBase(slot, now);
}

void TellOpen(ThreadSlot& slot, uint64_t now) {
  for (const OpenCall* call = slot.calls + 1; call < Top(slot); ++call) {
    if (!IsUntold(*call)) continue;
    if (Prepare(slot, now)) Announce(slot, now);
    return;
  }
}

void FinishStream(ThreadSlot& slot, uint64_t now) {
  if (slot.chunk != 0) Finish(slot, now);
}

void ForgetChunk(ThreadSlot& slot) {
  LetGo(slot);
  slot.taken = 0;
  slot.no_chunk_at = 0;
  slot.sequence = 0;
  for (OpenCall* call = slot.calls + 1; call < Top(slot); ++call) call->function &= ~kAnnounced;
}

}  // namespace stackreel::agent
