#include "tracer/leave_target.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string>

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
// ours. Of a chain of tail calls each word leads to the one before.
uint64_t TrueReturnAddress(uint64_t word, std::span<const OpenCall> calls) {
  for (size_t i = 0; i <= calls.size(); ++i) {
    const auto call = std::ranges::find_if(calls, [word](const OpenCall& candidate) {
      return candidate.return_point == word && candidate.return_point != 0;
    });
    if (call == calls.end()) return word;
    word = call->return_address;
  }
  return word;
}

class ThreadLeaver {
 public:
  ThreadLeaver(Target& target, const ThreadSlot& slot, Avma at) : target_(target), slot_(slot) {
    const uint64_t first = at.value + offsetof(ThreadSlot, calls);
    const uint64_t top = std::clamp<uint64_t>(slot.top, first, first + sizeof(slot.calls));
    // calls[0] is a sentinel.
    for (uint64_t i = 1; i < (top - first) / sizeof(OpenCall); ++i) {
      if (slot.calls[i].place != 0) open_.push_back(slot.calls[i]);
    }
    all_ = open_;
    constexpr uint64_t kNoneAnyMore = 1;
    for (const OpenCall& call : slot.parked) {
      if (call.place > kNoneAnyMore) all_.push_back(call);
    }
  }

  [[nodiscard]] size_t PutBack() {
    std::map<uint64_t, std::vector<OpenCall>> by_place;
    for (const OpenCall& call : all_) by_place[call.place].push_back(call);
    size_t count = 0;
    for (const auto& [place, calls] : by_place) {
      // A stack that was freed, or a word that was used again: nobody returns through it.
      const auto word = target_.ReadObject<uint64_t>(Avma(place));
      if (!word) continue;
      const uint64_t to = TrueReturnAddress(*word, calls);
      if (to == *word) continue;
      if (target_.WriteObject(Avma(place), to)) ++count;
    }
    return count;
  }

  // Entries of what the trace does not know of.
  void AppendOpen(std::vector<uint32_t>& words) const {
    for (const OpenCall& call : open_) {
      if ((call.function & (tracedata::kAnnounced | tracedata::kLeftBit)) != 0) continue;
      if (call.start < slot_.base || call.start - slot_.base > UINT32_MAX) continue;
      words.push_back(tracedata::EventHead(tracedata::EventKind::kEntry, call.function));
      words.push_back(static_cast<uint32_t>(call.start - slot_.base));
    }
  }

 private:
  Target& target_;
  const ThreadSlot& slot_;
  std::vector<OpenCall> open_, all_;
};

}  // namespace

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
                                            OpenCallWords& open) {
  const Avma control = agent.control();
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, recording), 0));
  TRY_ASSIGN(const auto used,
             target.ReadObject<uint32_t>(control + offsetof(AgentControl, slots_used)));
  TRY_ASSIGN(const auto pid, target.ReadObject<uint32_t>(control + offsetof(AgentControl, pid)));
  // Who is in the agent, a stub or a copy of an original, or will be when a signal handler returns.
  std::set<uint32_t> inside, alive;
  TRY_ASSIGN(const std::vector<ThreadPosition> positions, FindPositions(target));
  const auto threads = target.threads().threads();
  std::vector<uint32_t> own_ids;
  for (const os::StoppedProcess::Thread& thread : threads) {
    own_ids.push_back(OwnId(thread.pid, thread.tid));
    alive.insert(own_ids.back());
  }
  for (const ThreadPosition& position : positions) {
    if (Contains(code, position.position.ip)) inside.insert(own_ids[position.thread]);
  }
  LeaveOutcome outcome;
  auto slot = std::make_unique<ThreadSlot>();
  for (uint32_t i = 0; i < std::min(used, tracedata::kThreadSlots); ++i) {
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(slot.get()), sizeof(ThreadSlot));
    TRY(target.Read(agent.slot(i), bytes));
    if (slot->tid == 0 || !alive.contains(slot->tid)) continue;
    ThreadLeaver leaver(target, *slot, agent.slot(i));
    if (slot->busy != 0 || inside.contains(slot->tid)) {
      ++outcome.busy;
      continue;
    }
    outcome.put_back += leaver.PutBack();
    if (const std::pair key(pid, slot->tid); !open.contains(key)) leaver.AppendOpen(open[key]);
  }
  return outcome;
}

Status MarkLeft(Target& target, const AgentPlace& agent) {
  // Behind this nobody finds a slot, or open calls.
  TRY(target.SystemCall(
      "madvise", SYS_madvise,
      {agent.directory().value, tracedata::kPrivateSize - tracedata::kControlSize, MADV_DONTNEED}));
  const Avma control = agent.control();
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, fork_mark_set), 0));
  TRY(target.WriteObject<uint32_t>(control + offsetof(AgentControl, slots_used), 0));
  TRY(target.WriteObject<uint64_t>(control + offsetof(AgentControl, journal_size), 0));
  return target.WriteObject<uint32_t>(control + offsetof(AgentControl, tracer_pid), 0);
}

}  // namespace stackreel::tracer
