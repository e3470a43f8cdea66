// Processes whose functions are traced by stackreel at the same time: what an unwinder must know of
// that, read from the memory of the agents in them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/agent_memory_reader.h"
#include "base/counters.h"
#include "os/file.h"
#include "os/own_ids.h"
#include "record/tick_clock.h"
#include "unwind/detours.h"
#include "unwind/unwind.h"

namespace stackreel::record {

class TracedProcesses {
 public:
  // `counters` must outlive it. `clockid`: of the samples' times, if one was chosen.
  TracedProcesses(std::optional<int32_t> clockid, Counters& counters)
      : clock_(clockid), counters_(counters) {}

  // A thread was sampled at this time, with these maps of its process. Null: the process is not
  // traced, as far as can be told by them. What it points to is as of the last Refresh, and stays.
  const unwind::Detours* Of(uint32_t pid, uint32_t tid, uint32_t parent,
                            const unwind::UnwindMaps& maps, uint64_t time);
  // Whether there are any.
  [[nodiscard]] bool any() const {
    return std::ranges::any_of(processes_,
                               [](const auto& known) { return known.second->agent.has_value(); });
  }
  // Calls unnamed(pid, code, time) for each agent's code and the time of a sample from which on it
  // may have no name: where it was found, and where the process's maps have changed, which an
  // execve may have done. Once, and anew after ForgetAgents.
  template <typename F>
  void ForEachUnnamed(F unnamed) {
    for (const auto& [process, time] : std::exchange(unnamed_, {})) {
      if (process->agent) unnamed(process->pid, process->agent->code, time);
    }
  }
  void ForgetAgents() {
    for (const auto& [pid, process] : processes_) unnamed_.emplace_back(process.get(), 0);
  }
  // Looks at those that Of was asked for since the last time. No unwinder may be at work.
  void Refresh();
  // Looks several times more at one of those that were asked for last, to see more of what its
  // functions return to. False: it is gone.
  bool LearnMore(const unwind::Detours* detours);
  // A time of a sample as ticks of the traces, for UnwindInput: 0 if that is not known.
  [[nodiscard]] uint64_t TicksAt(uint64_t time, bool kernel_clock) const {
    return clock_.TicksAt(time, kernel_clock);
  }
  // Whether the trace of a process counts time by the kernel's clock.
  [[nodiscard]] bool UsesKernelClock(uint32_t pid) const;

 private:
  struct Process {
    uint32_t pid = 0;
    uint64_t maps_version = 0;  // that were looked at
    os::Fd memory;
    std::optional<agent::AgentPlace> agent;
    bool kernel_clock = false;
    uint64_t journal = 0, journal_size = 0;
    int learnt = 0;                              // times that more was looked for
    std::set<uint32_t> sampled, sampled_before;  // threads, since the last Refresh and before
    unwind::Detours detours;
  };
  void Look(Process& process);
  void ReadStubs(Process& process, const tracedata::AgentControl& control);
  void ReadOpen(Process& process, const tracedata::AgentControl& control);
  bool ReadOpenCalls(Process& process, const tracedata::AgentControl& control,
                     std::vector<unwind::OpenReturn>& open);
  static void ReadCalls(const Process& process, Avma slot, uint64_t top,
                        std::vector<unwind::OpenReturn>& out);
  static Status Read(const Process& process, Avma at, std::span<uint8_t> out);

  TickClock clock_;
  Counters& counters_;
  os::OwnIds own_ids_;
  std::map<uint32_t, std::unique_ptr<Process>> processes_;
  std::set<Process*> asked_;
  std::vector<std::pair<const Process*, uint64_t>> unnamed_;  // from which time on
};

}  // namespace stackreel::record
