#include "tracer/leave_target.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>

#include "agent/stub.h"
#include "tracedata/call_event.h"
#include "tracer/target_process.h"

namespace stackreel::tracer {

namespace {

using tracedata::AgentControl;
using tracedata::OpenCall;
using tracedata::ThreadSlot;

bool Contains(std::span<const patch::AddressRange> ranges, Avma at) {
  return std::ranges::any_of(ranges, [at](const auto& range) { return range.Contains(at); });
}

// The true return address that a word on the stack stands for; the word itself if that is none of
// ours. Of a chain of tail calls each word leads to the one before, which is older.
uint64_t TrueReturnAddress(uint64_t word, std::vector<OpenCall>& calls) {
  std::ranges::sort(calls, std::ranges::greater(), &OpenCall::start);
  for (const OpenCall& call : calls) {
    if (call.return_point == word && word != 0) word = call.return_address;
  }
  return word;
}

// What a slot holds, of a thread that may have ended.
struct SlotCalls {
  uint32_t tid = 0;
  bool busy = false;
  std::vector<OpenCall> open, parked;
};

Result<SlotCalls> ReadCalls(const Target& target, Avma at) {
  auto slot = std::make_unique<ThreadSlot>();
  TRY(target.Read(at, {reinterpret_cast<uint8_t*>(slot.get()), sizeof(ThreadSlot)}));
  SlotCalls calls{.tid = slot->tid, .busy = slot->busy != 0, .open = {}, .parked = {}};
  const uint64_t first = at.value + offsetof(ThreadSlot, calls);
  const uint64_t top = std::clamp<uint64_t>(slot->top, first, first + sizeof(slot->calls));
  // calls[0] is a sentinel.
  for (uint64_t i = 1; i < (top - first) / sizeof(OpenCall); ++i) {
    if (slot->calls[i].place != 0) calls.open.push_back(slot->calls[i]);
  }
  constexpr uint64_t kNoneAnyMore = 1;
  for (const OpenCall& call : slot->parked) {
    if (call.place > kNoneAnyMore) calls.parked.push_back(call);
  }
  return calls;
}

// Puts back what the words of the stacks stand for: of calls with one place, the newest whose
// stub's address is there.
size_t PutBack(Target& target, const std::vector<OpenCall>& all) {
  std::map<uint64_t, std::vector<OpenCall>> by_place;
  for (const OpenCall& call : all) by_place[call.place].push_back(call);
  size_t count = 0;
  for (auto& [place, calls] : by_place) {
    // A stack that was freed, or a word that was used again: nobody returns through it.
    const auto word = target.ReadObject<uint64_t>(Avma(place));
    if (!word) continue;
    const uint64_t to = TrueReturnAddress(*word, calls);
    if (to == *word) continue;
    if (target.WriteObject(Avma(place), to)) ++count;
  }
  return count;
}

std::vector<UntoldCall> UntoldOf(const SlotCalls& slot) {
  std::vector<UntoldCall> untold;
  for (const OpenCall& call : slot.open) {
    if (!IsUntold(call)) continue;
    untold.push_back({.start = call.start, .function = call.function & tracedata::kMaxFunction});
  }
  return untold;
}

struct HeldThreads {
  std::set<uint32_t> alive;   // as they see themselves
  std::set<uint32_t> inside;  // in the agent, a stub or a copy of an original, now or when a signal
                              // handler returns
};
Result<HeldThreads> LookAtThreads(Target& target, const AgentPlace& agent,
                                  std::span<const patch::AddressRange> code) {
  TRY_ASSIGN(const auto traps,
             target.ReadObject<uint64_t>(agent.control() + offsetof(AgentControl, trap_table)));
  const bool handles_traps = traps != 0;
  TRY_ASSIGN(const std::vector<ThreadPosition> positions, FindPositions(target));
  HeldThreads held;
  OwnIds ids;
  std::vector<uint32_t> own_ids;
  for (const os::StoppedProcess::Thread& thread : target.threads().threads()) {
    own_ids.push_back(ids.Of(thread.pid, thread.tid));
    held.alive.insert(own_ids.back());
  }
  for (const ThreadPosition& position : positions) {
    // Who has met a trap comes to the agent's handler.
    const bool comes = position.position.trap_pending && handles_traps;
    if (comes || Contains(code, position.position.ip)) {
      held.inside.insert(own_ids[position.thread]);
    }
  }
  return held;
}

// By the filters of a process that is held.
bool IsForbidden(const Error& error) {
  return error.kind == ErrorKind::kUnsupported || error.kind == ErrorKind::kPermission;
}

Status ClearByHand(Target& target, const AgentPlace& agent) {
  TRY_ASSIGN(const auto used,
             target.ReadObject<uint32_t>(agent.control() + offsetof(AgentControl, slots_used)));
  const std::vector<uint8_t> zeros(
      std::max<uint64_t>(tracedata::kDirectorySize, sizeof(ThreadSlot)));
  TRY(target.Write(agent.directory(), {zeros.data(), tracedata::kDirectorySize}));
  for (uint32_t i = 0; i < std::min(used, tracedata::kThreadSlots); ++i) {
    TRY(target.Write(agent.slot(i), {zeros.data(), sizeof(ThreadSlot)}));
  }
  return {};
}

}  // namespace

bool RecordsCalls(const patch::Site& site) {
  const uint64_t head = site.out_of_line - site.stub;
  return head == agent::StubHeadLength(agent::StubKind::kCall) ||
         head == agent::StubHeadLength(agent::StubKind::kFramedCall);
}

Result<std::vector<patch::AddressRange>> AgentCodeRanges(const Target& target,
                                                         const AgentPlace& agent,
                                                         std::span<const patch::Site> sites) {
  std::vector<patch::AddressRange> ranges = {{agent.code, agent.code + tracedata::kAgentCodeSize}};
  TRY_ASSIGN(const std::vector<os::ProcMapping> maps, os::ReadProcMaps(target.pid()));
  std::set<uint64_t> starts;
  for (const patch::Site& site : sites) {
    const auto after = std::ranges::upper_bound(maps, site.stub.value, {}, &os::ProcMapping::start);
    if (after == maps.begin()) continue;
    const os::ProcMapping& mapping = *std::prev(after);
    if (site.stub.value >= mapping.end || !starts.insert(mapping.start).second) continue;
    ranges.push_back({Avma(mapping.start), Avma(mapping.end)});
  }
  return ranges;
}

Result<LeaveOutcome> PutReturnAddressesBack(Target& target, const AgentPlace& agent,
                                            std::span<const patch::AddressRange> code,
                                            UntoldCalls& open) {
  const Avma control = agent.control();
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, recording), 0));
  // Who waits for an answer goes on.
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, answers), 0));
  TRY_ASSIGN(const auto used,
             target.ReadObject<uint32_t>(control + offsetof(AgentControl, slots_used)));
  TRY_ASSIGN(const auto pid, target.ReadObject<uint32_t>(control + offsetof(AgentControl, pid)));
  TRY_ASSIGN(HeldThreads held, LookAtThreads(target, agent, code));
  std::vector<OpenCall> running, others;
  for (uint32_t i = 0; i < std::min(used, tracedata::kThreadSlots); ++i) {
    TRY_ASSIGN(const SlotCalls slot, ReadCalls(target, agent.slot(i)));
    const bool is_alive = held.alive.contains(slot.tid);
    if (is_alive && slot.busy) held.inside.insert(slot.tid);
    // What was begun in a thread that has ended may be a fiber's that another thread goes on with.
    auto& open_calls = is_alive && !held.inside.contains(slot.tid) ? running : others;
    open_calls.insert(open_calls.end(), slot.open.begin(), slot.open.end());
    others.insert(others.end(), slot.parked.begin(), slot.parked.end());
    if (!is_alive || held.inside.contains(slot.tid)) continue;
    open.try_emplace({pid, slot.tid}, UntoldOf(slot));
  }
  LeaveOutcome outcome{.put_back = 0, .busy = held.inside.size()};
  // A stack that was used again may have, for one word, an old call in one slot and a new one in
  // another: which of them counts can be told when nobody is about to add one.
  if (outcome.busy == 0) running.insert(running.end(), others.begin(), others.end());
  outcome.put_back = PutBack(target, running);
  return outcome;
}

Status MarkLeft(Target& target, const AgentPlace& agent) {
  // Where the program's filters forbid it, the handler stays: it hands on what comes to it.
  if (const Status restored = RestoreTrapHandler(target, agent); !restored) {
    if (!IsForbidden(restored.error())) return restored;
  }
  const Avma control = agent.control();
  // Behind this nobody finds a slot, or open calls.
  const auto cleared = target.SystemCall(
      "madvise", SYS_madvise,
      {agent.directory().value, tracedata::kPrivateSize - tracedata::kControlSize, MADV_DONTNEED});
  if (!cleared) {
    if (!IsForbidden(cleared.error())) return Fail(cleared.error());
    TRY(ClearByHand(target, agent));
  }
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, fork_mark_set), 0));
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, slots_used), 0));
  TRY(target.WriteObject<uint64_t>(control + offsetof(AgentControl, journal_size), 0));
  return target.WriteObject<uint32_t>(control + offsetof(AgentControl, tracer_pid), 0);
}

}  // namespace stackreel::tracer
