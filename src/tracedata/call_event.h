// The events of traced functions: what an agent writes into its memory and a trace file keeps.
#pragma once

#include <array>
#include <cstdint>

namespace stackreel::tracedata {

// A chunk is a run of little-endian 32-bit words, written by one thread. Each event begins with a
// word of its kind and function:
//
//   bit 31 … 29    28       27 … 0
//       kind     values   function
//
//   kCall    head start duration      a call that began and ended in this chunk
//   kEntry   head start               a call that is open at the end of the chunk, or has arguments
//   kExit    head end                 of a call whose kEntry stands in this or an earlier chunk
//   kLeft    head end                 the same, but it did not return: a longjmp, an exception or a
//                                     thread's end went past it
//   kLost    head time count          calls that were not recorded; `function` is a LossReason
//   kBase    head low high            from here on, times count from this one (ticks, 64 bits)
//
// Times are in ticks since the chunk's base, or the last kBase. With `values`, a word of a byte
// count follows and then that many bytes, padded with zeros to whole words: the arguments of a
// kEntry, the return value of a kExit or kCall. A call whose arguments are recorded has its kEntry
// at once, so that they are known should it never end. A head of 0 ends a chunk.
//
// Events stand in the order in which they were written, which for kCall is that of their ends:
//
//   f( g() h() )      kCall g · kCall h · kCall f
//
// The calls of a thread nest. Within a chunk each call that is not inside another call of this
// chunk is inside the innermost call that is open (kEntry in an earlier chunk, no end yet). When a
// chunk is full, or a kBase is due, every open call that has no kEntry yet gets one there,
// outermost first; so a reader that holds one chunk of each thread can put all events in the order
// of time.
enum class EventKind : uint8_t {
  kEnd = 0,
  kCall = 1,
  kEntry = 2,
  kExit = 3,
  kLeft = 4,
  kLost = 5,
  kBase = 6,
};
inline constexpr uint8_t kEventKinds = 7;

// Why calls were not recorded. kLost of a thread says how many since the last.
enum class LossReason : uint8_t {
  kInterrupted,  // made by a signal handler that interrupted the agent in this thread
  kTooDeep,      // more open calls than the shadow stack holds
  kNoThread,     // more threads than there is room for
  kNoSpace,      // no free chunk: whoever empties them is behind (--on-full=drop), or gone
};
inline constexpr uint8_t kLossReasons = 4;
using LostCalls = std::array<uint64_t, kLossReasons>;  // how many, by LossReason

inline constexpr uint32_t kFunctionBits = 28;
inline constexpr uint32_t kMaxFunction = (uint32_t{1} << kFunctionBits) - 1;
inline constexpr uint32_t kValuesBit = uint32_t{1} << kFunctionBits;
inline constexpr uint32_t kKindShift = 29;

constexpr uint32_t EventHead(EventKind kind, uint32_t function, bool values = false) {
  return uint32_t{static_cast<uint8_t>(kind)} << kKindShift | (values ? kValuesBit : 0) |
         (function & kMaxFunction);
}
constexpr uint8_t KindBitsOf(uint32_t head) { return static_cast<uint8_t>(head >> kKindShift); }
constexpr bool HasValues(uint32_t head) { return (head & kValuesBit) != 0; }
constexpr uint32_t FunctionOf(uint32_t head) { return head & kMaxFunction; }

// Words of an event without its values.
constexpr uint32_t EventWords(EventKind kind) {
  switch (kind) {
    case EventKind::kCall:
    case EventKind::kLost:
    case EventKind::kBase:
      return 3;
    case EventKind::kEntry:
    case EventKind::kExit:
    case EventKind::kLeft:
      return 2;
    case EventKind::kEnd:
      break;
  }
  return 1;
}

}  // namespace stackreel::tracedata
