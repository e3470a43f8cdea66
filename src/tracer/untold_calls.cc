#include "tracer/untold_calls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "tracer/trace_clock.h"

namespace stackreel::tracer {

namespace {

using tracedata::AgentControl;
using tracedata::OpenCall;
using tracedata::ThreadSlot;

// What stands before the calls.
struct SlotHead {
  uint32_t tid = 0;
  uint64_t top = 0;
};
Result<SlotHead> ReadHead(const Target& target, Avma slot) {
  std::array<uint8_t, offsetof(ThreadSlot, calls)> bytes = {};
  TRY(target.Read(slot, bytes));
  SlotHead head;
  std::memcpy(&head.tid, &bytes[offsetof(ThreadSlot, tid)], sizeof(head.tid));
  std::memcpy(&head.top, &bytes[offsetof(ThreadSlot, top)], sizeof(head.top));
  return head;
}

bool IsSame(const OpenCall& a, const OpenCall& b) {
  return a.place == b.place && a.start == b.start && a.function == b.function;
}

}  // namespace

Result<UntoldCalls> ReadUntoldCalls(const Target& target, const AgentPlace& agent) {
  const Avma control = agent.control();
  TRY_ASSIGN(const auto used,
             target.ReadObject<uint32_t>(control + offsetof(AgentControl, slots_used)));
  TRY_ASSIGN(const auto pid, target.ReadObject<uint32_t>(control + offsetof(AgentControl, pid)));
  TRY_ASSIGN(const auto least_age,
             target.ReadObject<uint64_t>(control + offsetof(AgentControl, min_duration)));
  UntoldCalls untold;
  std::vector<OpenCall> calls, again;
  for (uint32_t i = 0; i < std::min(used, tracedata::kThreadSlots); ++i) {
    const Avma slot = agent.slot(i);
    TRY_ASSIGN(const SlotHead head, ReadHead(target, slot));
    // calls[0] is a sentinel.
    const Avma first = slot + offsetof(ThreadSlot, calls) + sizeof(OpenCall);
    if (head.tid == 0 || head.tid == UINT32_MAX || head.top <= first.value) continue;
    const uint64_t count =
        std::min<uint64_t>((head.top - first.value) / sizeof(OpenCall), tracedata::kOpenCalls - 1);
    calls.resize(count);
    again.resize(count);
    // What is the same twice was not being written.
    for (std::vector<OpenCall>* into : {&calls, &again}) {
      TRY(target.Read(first, {reinterpret_cast<uint8_t*>(into->data()), count * sizeof(OpenCall)}));
    }
    const uint64_t now = NowTicks();
    std::vector<UntoldCall>& out = untold[{pid, head.tid}];
    for (uint64_t n = 0; n < count; ++n) {
      if (!IsUntold(calls[n]) || !IsSame(calls[n], again[n])) continue;
      if (now < calls[n].start || now - calls[n].start < least_age) continue;
      out.push_back(
          {.start = calls[n].start, .function = calls[n].function & tracedata::kMaxFunction});
    }
  }
  return untold;
}

}  // namespace stackreel::tracer
