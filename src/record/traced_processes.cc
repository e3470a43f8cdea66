#include "record/traced_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <thread>

#include "agent/stub.h"

namespace stackreel::record {

namespace {

using tracedata::AgentControl;
using tracedata::OpenCall;
using tracedata::ThreadSlot;

// An agent's code is anonymous and executable.
bool MayHaveAgent(const unwind::UnwindMaps& maps) {
  return std::ranges::any_of(maps.mappings, [](const unwind::UnwindMapping& mapping) {
    return mapping.executable && mapping.end - mapping.start >= tracedata::kAgentCodeSize &&
           (mapping.module == nullptr || mapping.module->image() == nullptr);
  });
}

template <typename T>
std::span<uint8_t> BytesOf(T& object) {
  return {reinterpret_cast<uint8_t*>(&object), sizeof(object)};
}

bool IsSame(const OpenCall& a, const OpenCall& b) {
  return a.place == b.place && a.start == b.start && a.return_address == b.return_address &&
         a.return_point == b.return_point;
}

}  // namespace

Status TracedProcesses::Read(const Process& process, Avma at, std::span<uint8_t> out) {
  for (size_t done = 0; done < out.size();) {
    const ssize_t n = pread(process.memory.get(), out.data() + done, out.size() - done,
                            static_cast<off_t>(at.value + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Fail(os::ErrnoError(n < 0 ? errno : EIO, "cannot read process"));
    done += static_cast<size_t>(n);
  }
  return {};
}

const unwind::Detours* TracedProcesses::Of(uint32_t pid, uint32_t tid, uint32_t parent,
                                           const unwind::UnwindMaps& maps, uint64_t time) {
  auto& process = processes_[pid];
  if (process == nullptr) {
    if (!MayHaveAgent(maps)) {
      processes_.erase(pid);
      return nullptr;
    }
    process = std::make_unique<Process>();
    process->pid = pid;
    if (const auto from = processes_.find(parent); from != processes_.end()) {
      process->detours.LearnFrom(from->second->detours);
    }
  }
  if (process->maps_version != maps.version) {
    process->maps_version = maps.version;
    Look(*process);
    if (process->agent) unnamed_.emplace_back(process.get(), time);
  }
  if (!process->agent) return nullptr;
  process->sampled.insert(tid);
  asked_.insert(process.get());
  return &process->detours;
}

bool TracedProcesses::UsesKernelClock(uint32_t pid) const {
  const auto found = processes_.find(pid);
  return found != processes_.end() && found->second->kernel_clock;
}

// Finds the agent of a process, unless it is known and still there.
void TracedProcesses::Look(Process& process) {
  AgentControl control;
  if (process.agent && Read(process, process.agent->control(), BytesOf(control))) return;
  const auto maps = os::ReadProcMaps(process.pid);
  if (!maps || maps->empty()) return;  // it has ended: what was learnt holds
  process.agent.reset();
  process.memory =
      os::Fd(open(fmt::format("/proc/{}/mem", process.pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (!process.memory.valid()) return;
  const auto found = agent::FindAgent(
      *maps, [&](Avma at, std::span<uint8_t> out) { return Read(process, at, out); });
  if (!found) return;
  if (found->version != tracedata::kAgentVersion) {
    counters_.Add("record.traced_by_other_version");
    return;
  }
  process.agent = found->place;
  process.journal = process.journal_size = 0;
  process.detours.SetAgent(
      {found->place.code.value, found->place.code.value + tracedata::kAgentCodeSize});
}

void TracedProcesses::Refresh() {
  clock_.Measure();
  for (Process* process : asked_) {
    AgentControl control;
    if (Read(*process, process->agent->control(), BytesOf(control)) &&
        control.magic == tracedata::kAgentMagic) {
      process->kernel_clock = control.kernel_clock != 0;
      ReadStubs(*process, control);
      ReadOpen(*process, control);
    } else {
      counters_.Add("record.agent_gone");
    }
    process->sampled_before = std::exchange(process->sampled, {});
  }
  asked_.clear();
}

bool TracedProcesses::LearnMore(const unwind::Detours* detours) {
  constexpr int kLooks = 24;
  constexpr auto kPause = std::chrono::microseconds(100);
  const auto found = std::ranges::find_if(
      processes_, [detours](const auto& known) { return &known.second->detours == detours; });
  if (found == processes_.end() || !found->second->agent) return false;
  Process& process = *found->second;
  // What stays unknown for long is not to be learnt in this way.
  constexpr int kOften = 40, kSeldom = 20;
  if (++process.learnt > kOften && process.learnt % kSeldom != 0) return false;
  for (int i = 0; i < kLooks; ++i) {
    AgentControl control;
    if (!Read(process, process.agent->control(), BytesOf(control))) return false;
    std::vector<unwind::OpenReturn> open;
    if (!ReadOpenCalls(process, control, open)) return false;
    process.detours.Learn(open);
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

void TracedProcesses::ReadStubs(Process& process, const AgentControl& control) {
  // Stubs stay when the trace has ended: contexts may lead there still.
  if (control.journal_size == 0) return;
  if (control.journal == process.journal && control.journal_size == process.journal_size) return;
  const auto sites = agent::ReadJournal(
      *process.agent, [&](Avma at, std::span<uint8_t> out) { return Read(process, at, out); });
  if (!sites) {
    counters_.Add("record.bad_agent_journal");
    return;
  }
  process.journal = control.journal;
  process.journal_size = control.journal_size;
  std::vector<unwind::Detour> stubs;
  stubs.reserve(sites->size());
  for (const patch::Site& site : *sites) stubs.push_back(agent::DetourOf(site));
  process.detours.SetStubs(std::move(stubs));
}

// The calls of the threads that were sampled: those that are open, and what is left of others.
void TracedProcesses::ReadOpen(Process& process, const AgentControl& control) {
  std::vector<unwind::OpenReturn> open;
  if (ReadOpenCalls(process, control, open)) process.detours.SetOpen(std::move(open));
}

bool TracedProcesses::ReadOpenCalls(Process& process, const AgentControl& control,
                                    std::vector<unwind::OpenReturn>& open) {
  // Of few threads all are read: a fiber's calls may be in another thread's slot.
  constexpr uint32_t kFewSlots = 64;
  const uint32_t used = std::min(control.slots_used, tracedata::kThreadSlots);
  std::set<uint32_t> wanted;
  if (used > kFewSlots) {
    const std::set<uint32_t>& tids =
        process.sampled.empty() ? process.sampled_before : process.sampled;
    for (const uint32_t tid : tids) wanted.insert(own_ids_.Of(process.pid, tid));
  }
  for (uint32_t i = 0; i < used; ++i) {
    const Avma slot = process.agent->slot(i);
    std::array<uint8_t, offsetof(ThreadSlot, calls)> head = {};
    if (!Read(process, slot, head)) return false;
    uint32_t tid = 0;
    uint64_t top = 0;
    std::memcpy(&tid, &head[offsetof(ThreadSlot, tid)], sizeof(tid));
    std::memcpy(&top, &head[offsetof(ThreadSlot, top)], sizeof(top));
    if (top == 0 || (used > kFewSlots && !wanted.contains(tid))) continue;
    ReadCalls(process, slot, top, open);
  }
  return true;
}

// calls[] of one slot, from the second (the first is a sentinel) to the first that was never used.
void TracedProcesses::ReadCalls(const Process& process, Avma slot, uint64_t top,
                                std::vector<unwind::OpenReturn>& out) {
  constexpr uint64_t kPiece = 32;
  std::array<OpenCall, kPiece> calls, again;
  for (uint64_t n = 1; n < tracedata::kOpenCalls; n += kPiece) {
    const uint64_t count = std::min<uint64_t>(kPiece, tracedata::kOpenCalls - n);
    const Avma at = slot + offsetof(ThreadSlot, calls) + n * sizeof(OpenCall);
    // What is the same twice was not being written.
    for (auto* into : {&calls, &again}) {
      const std::span<uint8_t> bytes = {reinterpret_cast<uint8_t*>(into->data()),
                                        count * sizeof(OpenCall)};
      if (!Read(process, at, bytes)) return;
    }
    for (uint64_t k = 0; k < count; ++k) {
      if (calls[k].return_point == 0) return;
      if (!IsSame(calls[k], again[k])) continue;
      out.push_back({.place = calls[k].place,
                     .return_point = calls[k].return_point,
                     .return_address = calls[k].return_address,
                     .start = calls[k].start,
                     .is_open = (at + k * sizeof(OpenCall)).value < top});
    }
  }
}

}  // namespace stackreel::record
