// What the parts of the agent's code know of each other. None of it allocates, takes a library's
// lock, throws, or is interrupted by a call of its own: nothing in it is ever patched.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/inside/registers.h"
#include "agent/inside/system_call.h"
#include "tracedata/action_table.h"
#include "tracedata/agent_memory.h"
#include "tracedata/call_event.h"
#include "tracedata/value_reads.h"

namespace stackreel::agent {

using tracedata::AgentControl;
using tracedata::ChunkHeader;
using tracedata::DirectoryEntry;
using tracedata::LossReason;
using tracedata::OpenCall;
using tracedata::PoolHeader;
using tracedata::ThreadSlot;

// agent.lds says where. Hidden, or the compiler would look for them in a table.
#pragma GCC visibility push(hidden)
// NOLINTBEGIN(bugprone-dynamic-static-initializers): they are declared here, and not initialised.
extern "C" AgentControl agent_control;
extern "C" DirectoryEntry agent_directory[tracedata::kDirectoryEntries];
extern "C" ThreadSlot agent_slots[tracedata::kThreadSlots];
extern "C" std::atomic<uint32_t> agent_fork_mark;
// NOLINTEND(bugprone-dynamic-static-initializers)
#pragma GCC visibility pop

inline PoolHeader& Pool() { return *reinterpret_cast<PoolHeader*>(agent_control.pool); }

// Whether a system call that the program's filter might be fatal at may be made.
inline bool MayCall() {
  return agent_control.own_calls.load(std::memory_order_acquire) == tracedata::OwnCalls::kAny;
}
// Or not even gettid and clock_gettime.
inline bool MayCallNothing() {
  return agent_control.own_calls.load(std::memory_order_acquire) == tracedata::OwnCalls::kNone;
}
uint64_t KernelTicks();  // waiting.cc; or the last ones
// Under seccomp's strict mode rdtsc is fatal, too.
inline uint64_t Ticks() {
  const bool by_kernel = agent_control.kernel_clock != 0 || MayCallNothing();
  return by_kernel ? KernelTicks() : __builtin_ia32_rdtsc();
}
// The word of a stack.
inline volatile uint64_t& WordAt(uint64_t place) {
  return *reinterpret_cast<volatile uint64_t*>(place);
}

// A place that no call has: of the sentinel, and of what was taken out of the parked ones.
inline constexpr uint64_t kHighestPlace = ~uint64_t{0};
inline constexpr uint64_t kTombstone = 1;
// Tid of a slot whose thread a fork did not copy.
inline constexpr uint32_t kNoTid = ~uint32_t{0};

inline OpenCall* Top(const ThreadSlot& slot) { return reinterpret_cast<OpenCall*>(slot.top); }
inline void SetTop(ThreadSlot& slot, const OpenCall* top) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  __atomic_store_n(&slot.top, reinterpret_cast<uint64_t>(top), __ATOMIC_RELEASE);
}
inline uint64_t EndOfCalls(const ThreadSlot& slot) {
  return reinterpret_cast<uint64_t>(slot.calls + tracedata::kOpenCalls);
}
inline uint32_t FunctionOf(const OpenCall& call) { return call.function & tracedata::kMaxFunction; }
// Counts a lost call where the tracer finds it whatever becomes of this process. `row`: any number,
// best one of the thread.
inline void CountForAll(LossReason reason, uint64_t row) {
  Pool().losses[row % tracedata::kLossRows].calls[static_cast<uint8_t>(reason)].fetch_add(
      1, std::memory_order_relaxed);
}
inline void Count(ThreadSlot& slot, LossReason reason) {
  CountForAll(reason, slot.tid);
  // One instruction, so that a signal handler cannot come in between.
  __atomic_fetch_add(&slot.lost[static_cast<uint8_t>(reason)], 1, __ATOMIC_RELAXED);
}

// slots.cc

// The calling thread's slot; null if it has none.
ThreadSlot* FindSlot();
// The same, taken if need be; null if there is none left.
ThreadSlot* FindOrTakeSlot();
// Makes the slot this function's (busy), for a call at `place`; false if that is made by a signal
// handler which has interrupted someone who has it. `sp` is the caller's.
bool Seize(ThreadSlot& slot, uint64_t place, uint64_t sp);
inline void Release(ThreadSlot& slot) { __atomic_store_n(&slot.busy, 0, __ATOMIC_RELEASE); }
// Ends the streams of threads that have ended, so that their chunks get emptied.
void FinishEnded();
// Whether this thread runs on its alternate signal stack, and `place` is not there.
bool OnOtherSignalStack(uint64_t place);

// The calling thread's id; 0 where it cannot be known.
uint32_t OwnTid();

// waiting.cc: by futex(2) and sched_yield(2), where the program's filter leaves them to us; else
// the thread runs meanwhile.

// Wakes the tracer, or lets it know that it is not woken.
void WakeTracer();
// Until the word is not `seen` any more, or a moment has passed: 100 ms at most.
void Await(std::atomic<uint32_t>& word, uint32_t seen);
// Lets others run, for a moment.
void Yield();
// How long somebody has waited, since it was asked first.
class WaitingTime {
 public:
  bool IsOver(uint64_t nanoseconds);

 private:
  uint64_t since_ = 0;        // nanoseconds, where the kernel may be asked
  uint64_t since_ticks_ = 0;  // 0: not yet
  uint64_t asked_ = 0;        // times
};

// chunks.cc: events. The slot is the caller's.

// The arguments of the call, which is the topmost of calls[], at `place`. It begins when they have
// been read.
void WriteArguments(ThreadSlot& slot, OpenCall& call, const tracedata::ValueReads& reads,
                    const SavedRegisters& registers, uint64_t place);
// The call, which is still among calls[], returned at `end`; its return value is in `registers`.
void WriteReturn(ThreadSlot& slot, OpenCall& call, uint64_t end, const SavedRegisters& registers);
// The call, which is still among calls[], will not return as far as one knows.
void WriteLeft(ThreadSlot& slot, OpenCall& call, uint64_t now);
// Writes that the thread's open calls are open, where that has not been said.
void TellOpen(ThreadSlot& slot, uint64_t now);
// Ends the thread's stream: nothing more will be written.
void FinishStream(ThreadSlot& slot, uint64_t now);
// Forgets chunk and sequence, so that all open calls will be announced anew.
void ForgetChunk(ThreadSlot& slot);
// Calls that were held back are to be recorded after all: the innermost open ones.
void Unhold(ThreadSlot& slot, uint64_t now);

// actions.cc

// What becomes of a call.
struct CallPlan {
  bool opens = true;                              // else it is passed through
  bool leads_here = false;                        // open calls are not held back any more
  uint32_t state = 0;                             // its OpenCall has these
  uint32_t bits = 0;                              // beside its function
  const tracedata::ValueReads* values = nullptr;  // that are recorded with it
};
// Of a call of `function` at `place`, when calls[] has been made ready for it. Does what its
// function does to all threads.
CallPlan PlanCall(ThreadSlot& slot, uint32_t function, uint64_t place);
// The values that are recorded with calls of a function; null: none.
const tracedata::ValueReads* ValuesOf(uint32_t function);
// A call that is shorter is not written, in ticks.
uint64_t LeastDuration(const OpenCall& call);
// The call, which is among calls[], was written: so will be the one that made it.
void KeepCaller(const OpenCall& call);

// values.cc

// Reads arguments (`entering`) or the return value of the call whose return address stands, or
// stood, at `place`. At most kMaxValueBytes; what is behind those at `out`, up to 16 bytes, may be
// changed, too. Gives how many there are.
uint32_t ReadValues(const tracedata::ValueReads& reads, const SavedRegisters& registers,
                    uint64_t place, bool entering, uint8_t* out);

// parked_calls.cc

// Keeps the call where FindParked finds it; false if there is no room. The caller then takes it
// from calls[].
bool Park(ThreadSlot& slot, const OpenCall& call);
// The newest one with this place and return point; null if there is none.
OpenCall* FindParked(ThreadSlot& slot, uint64_t place, uint64_t return_point);
void Unpark(ThreadSlot& slot, OpenCall& call);
// Parks what stands below `place` on calls[], as it was left, or its fiber was; false if there was
// no room for something.
bool ParkBelow(ThreadSlot& slot, uint64_t place, uint64_t now);

// unwind.cc

// Hijacks again what an unwinder had restored and is still there for a call at `place`.
void HijackAgain(ThreadSlot& slot, uint64_t place, uint64_t now);
// Whether a word can be read there; remembers the last page that could. Where the kernel may not be
// asked, only what is near on the stack in use is known to be.
class ReadablePages {
 public:
  bool Contains(uint64_t place);

 private:
  uint64_t page_ = kTombstone;
};

}  // namespace stackreel::agent
