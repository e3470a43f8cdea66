// The memory through which a tracer and its agent in a traced process speak: plain data, at the
// same offsets in both. Nothing here is a promise between versions: the agent comes out of the very
// program that commands it, but a later one may meet it (`detach`), so kAgentVersion rises with
// every change.
//
//   one reservation in the traced process
//   |code, r-x: kAgentCodeSize|AgentControl + journal place|directory|slots …|       private
//   |pool: PoolHeader, ChunkHeader × chunks, chunks' words …|                         shared memfd
//
// Private memory is copied by fork(2) at the very moment that the stacks are, so the open calls of
// the child's one thread are right by themselves. The pool is shared with forked children and with
// the tracer, and outlives a process that is killed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tracedata/call_event.h"

namespace stackreel::tracedata {

inline constexpr uint64_t kAgentMagic = 0x31746e6761727473;  // "stragnt1"
inline constexpr uint32_t kAgentVersion = 17;

inline constexpr uint64_t kAgentCodeSize = 64 << 10;

// An open call. Where its function will return to is kept here; at `place`, the word on the stack
// that held it, stands an address in the function's stub instead.
struct OpenCall {
  uint64_t place = 0;           // 0: none (any more)
  uint64_t return_address = 0;  // true one, or a stub's: a tail call was made
  uint64_t return_point = 0;    // the stub's address that stands at `place`
  uint64_t start = 0;           // ticks
  uint32_t function = 0;        // with the bits below
  uint32_t state = 0;           // see action_table.h; 0 where no function has actions
};
static_assert(sizeof(OpenCall) == 40);
inline constexpr uint32_t kAnnounced = uint32_t{1} << 31;  // its kEntry was written
// An unwinder is at work: the true return address stands at `place` for now.
inline constexpr uint32_t kRestored = uint32_t{1} << 30;
// Nothing (more) is written of it: its kLeft was, or it is not to be recorded.
inline constexpr uint32_t kLeftBit = uint32_t{1} << 29;
// There is more to do about it when it returns than its `function` and `start` say.
inline constexpr uint32_t kActs = uint32_t{1} << 28;
// Whether it is open, recorded, and no event tells of it yet.
[[nodiscard]] inline bool IsUntold(const OpenCall& call) {
  return call.place != 0 && (call.function & (kAnnounced | kLeftBit)) == 0;
}

inline constexpr uint32_t kOpenCalls = 2048;  // of one thread
// Of one thread, that may have been left or may be a fiber's that comes back; a power of two.
inline constexpr uint32_t kParkedCalls = 2048;
inline constexpr uint32_t kThreadSlots = 1024;
inline constexpr uint32_t kDirectoryEntries = 4 * kThreadSlots;  // a power of two

// What an agent knows of one thread. Only that thread writes it, while `busy` is not 0; a tracer
// reads it, and writes it only while the process is stopped and `busy` is 0.
struct ThreadSlot {
  uint64_t thread_pointer = 0;
  uint32_t tid = 0;       // 0: the slot is free
  uint32_t sequence = 0;  // of its next chunk
  // The stack pointer of whoever changes the slot now: a signal handler that finds it set records
  // nothing. A call whose place lies above came there by siglongjmp, and takes it over.
  uint64_t busy = 0;
  // Address of the OpenCall that the next call gets. calls[0] is a sentinel with the highest place.
  // From there on places fall, but for equal ones (a tail call), 0 (ended out of turn), and calls
  // of a signal handler on a stack of its own.
  uint64_t top = 0;
  uint64_t limit = 0;        // address behind the last; 0 while `unwinding`
  uint64_t write = 0;        // address of the next word
  uint64_t write_limit = 0;  // none is written at or behind it: kEntry of all open calls still fits
  uint64_t base = 0;         // ticks that times are counted from
  uint64_t chunk = 0;        // address of the ChunkHeader it writes to; 0: none
  uint64_t chunk_words = 0;  // address of its first word
  uint64_t unwinding = 0;    // place of the unwinder's call: until a call at or above it
  // PoolHeader::freed when none was free, + 1; 0: one was found; kNoMoreChunks: its thread has
  // ended.
  uint64_t no_chunk_at = 0;
  uint32_t parked_used = 0;          // of parked
  uint32_t lost[kLossReasons] = {};  // not yet told of by a kLost
  uint32_t parked_refused = 0;
  uint64_t actions = 0;  // address of the ActionTable that the states of its calls are of
  uint64_t taken = 0;    // address of the ChunkHeader that is about to be `chunk`
  uint64_t reserved[7] = {};
  OpenCall calls[kOpenCalls];
  // Hashed by place, those of one place in the order of their starts; place 1: none any more.
  OpenCall parked[kParkedCalls];
  // By index in calls[], of those whose arguments were written: where their kEntry is. The chunk's
  // sequence in the upper bits, then the word in the chunk (kChunkWordBits).
  uint32_t entries[kOpenCalls];
};
static_assert(offsetof(ThreadSlot, calls) % 64 == 0);
inline constexpr uint64_t kNoMoreChunks = ~uint64_t{0};

struct DirectoryEntry {
  uint64_t thread_pointer = 0;  // 0: free
  uint32_t tid = 0;
  uint32_t slot = 0;
};
static_assert(sizeof(DirectoryEntry) == 16);

// What the program's filter of system calls (seccomp) leaves to the agent: a call that it does not
// allow would end the program.
enum class OwnCalls : uint32_t {
  kAny = 0,
  kFew = 1,   // gettid and clock_gettime, where nothing else tells thread and time
  kNone = 2,  // seccomp's strict mode, under which rdtsc is fatal, too
};

// How a thread that finds no free chunk goes on.
enum class OnFull : uint32_t { kBlock = 0, kDrop = 1 };

inline constexpr uint32_t kNoTidOffset = ~uint32_t{0};

// Written by the tracer before the agent runs, and later only while the process is stopped, but for
// what is marked atomic. `recording` must stay 0 until fs:0 is the thread pointer in each thread
// that may call a patched function.
struct AgentControl {
  uint64_t magic = kAgentMagic;
  uint32_t version = kAgentVersion;
  uint32_t pid = 0;         // of the process, as it sees itself; the agent corrects it after fork
  uint32_t tracer_pid = 0;  // 0: detached
  // Where the C library keeps a thread's id, from the thread pointer (fs:0), for the short ways of
  // entry.S, which read rdtsc; kNoTidOffset: none are taken.
  uint32_t short_tid_offset = kNoTidOffset;
  std::atomic<uint32_t> recording = 0;  // 0: calls pass through
  OnFull on_full = OnFull::kBlock;
  std::atomic<uint64_t> min_duration = 0;  // ticks; shorter calls are not written
  uint64_t pool = 0;                       // addresses in this process
  uint64_t directory = 0;
  uint64_t slots = 0;
  uint64_t journal = 0;  // patch::EncodeSites, where somebody else finds the sites
  uint64_t journal_size = 0;
  std::atomic<uint32_t> slot_lock = 0;   // held while a slot is taken or given back
  uint32_t slots_used = 0;               // slots below this number have been in use
  std::atomic<uint64_t> trap_table = 0;  // address of a TrapTable; 0: none
  // What the program wants done about SIGTRAP, as the kernel's sigaction has it.
  uint64_t program_trap_handler = 0;
  uint64_t program_trap_flags = 0;
  uint64_t program_trap_mask = 0;
  uint32_t fork_generation = 0;  // the agent raises it in a forked child
  // 1: whoever put the agent here has set the fork mark, before any thread could come to it: a
  // child must know itself also where another thread held slot_lock when it was forked.
  std::atomic<uint32_t> fork_mark_set = 0;
  // PoolHeader::freed when a second went by without a free chunk, + 1: nobody waits until it rises.
  std::atomic<uint64_t> gave_up_at = 0;
  // Ticks when no slot was free: it takes a look at each to find out, so not at every call.
  std::atomic<uint64_t> no_slot_at = 0;
  // Of the dynamic linker (<link.h>, struct r_debug); 0: there is none, or nobody wants to know.
  std::atomic<uint64_t> debug_state = 0;
  // 1: a thread that loads libraries waits until the tracer has seen to them.
  std::atomic<uint32_t> await_libraries = 0;
  // PoolHeader::answered, + 1, when an answer was waited for in vain: until it rises nobody waits.
  std::atomic<uint32_t> unanswered_at = 0;
  // Address of an ActionTable; 0: no function has actions.
  std::atomic<uint64_t> actions = 0;
  // 1: calls that begin are not recorded, but for what a trace_on turns it to 0 (trace_off).
  std::atomic<uint32_t> tracing_off = 0;
  // 1: no system call is made to read texts, which are told to be unreadable then: one might be
  // fatal (seccomp). The agent sets it, too, before the program installs a filter.
  std::atomic<uint32_t> no_text_reads = 0;
  // 1: the tracer answers who asks.
  std::atomic<uint32_t> answers = 0;
  // 1: the tracer wants to know who executes another program, before he does
  // (PoolHeader::executing).
  std::atomic<uint32_t> follow = 0;
  // The same for all other ways; kNoTidOffset if it is not known: the agent asks the kernel then.
  uint32_t tid_offset = kNoTidOffset;
  // 1: ticks are nanoseconds of CLOCK_MONOTONIC, else those of rdtsc.
  uint32_t kernel_clock = 0;
  uint64_t program_trap_restorer = 0;  // to the program_trap_… above
  // 1: the program is about to block SIGTRAP, or to set a handler for it.
  std::atomic<uint32_t> traps_unsafe = 0;
  // Rises only: the agent sets it before the program limits its system calls, and so does the
  // tracer where it finds that it has.
  std::atomic<OwnCalls> own_calls = OwnCalls::kAny;
  std::atomic<uint64_t> last_ticks = 0;  // under kNone time stands still here
  // The child that PoolHeader::executed_children has counted last: it may try several files.
  std::atomic<uint32_t> counted_child = 0;
  uint64_t reserved[17] = {};
};
inline constexpr uint64_t kControlSize = 4096;
// What a system call that the tracer has a held process make points to.
inline constexpr uint64_t kScratchSize = 256;
inline constexpr uint64_t kScratchOffset = kControlSize - kScratchSize;
static_assert(sizeof(AgentControl) <= kScratchOffset);
// Behind the entries, in a page of its own, lies the fork mark: a uint32_t. The kernel clears mark
// and directory in a forked child (MADV_WIPEONFORK of the whole kDirectorySize; Linux 4.14), which
// thereby knows that its memory is a copy; a vfork child shares it and finds them as they were.
inline constexpr uint32_t kForkMarked = 1;
inline constexpr uint64_t kForkMarkOffset = kDirectoryEntries * sizeof(DirectoryEntry);
inline constexpr uint64_t kDirectorySize = kForkMarkOffset + 4096;
inline constexpr uint64_t kSlotsSize = kThreadSlots * sizeof(ThreadSlot);
inline constexpr uint64_t kPrivateSize = kControlSize + kDirectorySize + kSlotsSize;
inline constexpr uint64_t kAgentSize = kAgentCodeSize + kPrivateSize;

// Followed by its entries, patch::TrapEntry by address. Immutable once its address is stored.
struct TrapTable {
  uint64_t entries = 0;
};

// The pool.
enum class ChunkState : uint32_t {
  kFree = 0,
  kOwned = 1,  // a thread writes to it
  kFull = 2,   // no thread does any more: the tracer takes it, sets used to 0, and makes it free
};

struct ChunkHeader {
  std::atomic<uint32_t> state = 0;  // ChunkState
  // Bytes of whole events; rises as they are written. While it is 0, what follows counts for
  // nothing.
  std::atomic<uint32_t> used = 0;
  uint64_t base = 0;  // ticks
  uint32_t pid = 0, tid = 0;
  // Of this thread, from 0. A gap means that events were dropped: ends too, so that all open calls
  // get a kEntry again.
  uint32_t sequence = 0;
  // Of the process that wrote it: a child has another than its parent.
  uint32_t fork_generation = 0;
  uint64_t reserved[4] = {};
};
static_assert(sizeof(ChunkHeader) == 64);

inline constexpr uint32_t kChunkSize = 64 << 10;  // bytes of words
inline constexpr uint32_t kChunkWordBits = 14;
static_assert(kChunkSize == sizeof(uint32_t) << kChunkWordBits);

inline constexpr uint32_t kLossRows = 32;

// A thread that is about to execute another program and waits for an answer; ids as it sees them.
struct ExecutingThread {
  std::atomic<uint32_t> pid = 0;  // 0: free; kBeingTaken: tid does not count yet
  std::atomic<uint32_t> tid = 0;
};
inline constexpr uint32_t kBeingTaken = ~uint32_t{0};
// More at a time are not followed.
inline constexpr uint32_t kExecutingThreads = 64;

struct PoolHeader {
  uint64_t magic = kAgentMagic;
  uint32_t version = kAgentVersion;
  uint32_t chunks = 0;  // that there is room for
  // Rises when chunks become free: who waits for one waits for this (futex(2), shared).
  std::atomic<uint32_t> freed = 0;
  std::atomic<uint32_t> waiting = 0;  // threads that wait for it
  // Rises when a chunk becomes full; the tracer waits for it.
  std::atomic<uint32_t> filled = 0;
  std::atomic<uint32_t> tracer_waits = 0;
  std::atomic<uint32_t> hint = 0;  // where to look for a free chunk
  // Rises when the tracer is to look at the process before a thread goes on (and `filled` with it).
  // The tracer sets the others to what it has seen and, when it has looked, answered.
  std::atomic<uint32_t> asked = 0;
  std::atomic<uint32_t> seen = 0;
  std::atomic<uint32_t> answered = 0;  // a futex, shared
  // 1: a thread that may not make system calls has not woken the tracer, nor will others.
  std::atomic<uint32_t> unwoken = 0;
  // Chunks that have memory, the first ones. The tracer adds some where threads own most of them:
  // who calls rarely keeps his for long.
  std::atomic<uint32_t> ready = 0;
  // Children that have executed another program (or are about to), and nobody was asked for.
  std::atomic<uint32_t> executed_children = 0;
  uint32_t reserved[17] = {};
  // Every lost call, whether a kLost tells of it or not: what outlives the process. Threads share
  // the rows out between them, so that they do not wait for each other's cache line.
  struct alignas(64) Losses {
    std::atomic<uint64_t> calls[kLossReasons] = {};
  };
  Losses losses[kLossRows] = {};
  // Of the traced process and its children. The tracer makes free what it has seen.
  ExecutingThread executing[kExecutingThreads] = {};
  // ChunkHeader × chunks, then at the next page the chunks.
};
static_assert(sizeof(PoolHeader) == 128 + kLossRows * 64 + kExecutingThreads * 8);

constexpr uint64_t RoundUpToPage(uint64_t size) { return (size + 4095) & ~uint64_t{4095}; }
constexpr uint64_t ChunkHeaderOffset(uint32_t chunk) {
  return sizeof(PoolHeader) + uint64_t{chunk} * sizeof(ChunkHeader);
}
constexpr uint64_t ChunkOffset(uint32_t chunks, uint32_t chunk) {
  return RoundUpToPage(ChunkHeaderOffset(chunks)) + uint64_t{chunk} * kChunkSize;
}
constexpr uint64_t PoolSize(uint32_t chunks) { return ChunkOffset(chunks, chunks); }

// Functions that may set up what tracing could be fatal under; each has its arguments elsewhere.
enum class Setter : uint32_t { kPrctl, kSyscall, kSigaction, kSigmask };

// At the start of the agent's code: where its routines are, from there. See agent/stub.h.
struct AgentCodeHeader {
  uint64_t magic = kAgentMagic;
  uint32_t version = kAgentVersion;
  uint32_t enter = 0;          // a function is entered
  uint32_t enter_framed = 0;   // the same, behind push rbp; mov rbp, rsp (mcount)
  uint32_t leave = 0;          // and returns to its stub
  uint32_t before_unwind = 0;  // an unwinder begins: true return addresses are put back
  uint32_t after_catch = 0;    // an exception has been caught
  uint32_t trap = 0;           // handler of SIGTRAP
  uint32_t trap_return = 0;    // its restorer
  uint32_t libraries = 0;      // the dynamic linker has changed what is loaded
  // Of the first two, what is called where functions have actions.
  uint32_t enter_acting = 0;
  uint32_t enter_framed_acting = 0;
  uint32_t before_end = 0;   // the program ends
  uint32_t before_exec = 0;  // or becomes another
  // Or sets up what tracing could be fatal under: a filter of system calls, signals that are
  // blocked.
  uint32_t before_setting = 0;
};

}  // namespace stackreel::tracedata
