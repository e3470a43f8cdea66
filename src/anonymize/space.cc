#include "anonymize/space.h"

#include <variant>

#include "session/limits.h"

namespace stackreel::anonymize {

using perfdata::CpuMode;
using perfdata::RecordType;

namespace {

constexpr uint32_t kKernelPid = UINT32_MAX;

// Of a mapping: whose kernel's it is, or nobody's.
bool IsKernelMapping(CpuMode mode, uint32_t pid) {
  return mode == CpuMode::kKernel || mode == CpuMode::kGuestKernel ||
         (mode != CpuMode::kGuestUser && pid == kKernelPid);
}
uint64_t KeyOf(Machine machine, uint32_t pid) { return static_cast<uint64_t>(machine) << 32 | pid; }

}  // namespace

Machine MachineOf(CpuMode mode) {
  return mode == CpuMode::kGuestKernel || mode == CpuMode::kGuestUser ? Machine::kGuest
                                                                      : Machine::kHost;
}

SpaceTracker::Process& SpaceTracker::ProcessOf(Machine machine, uint32_t pid) {
  const auto [it, is_new] = processes_.try_emplace(KeyOf(machine, pid));
  if (is_new) it->second.space = next_++;
  return it->second;
}

SpaceId SpaceTracker::UserSpace(Machine machine, uint32_t pid) const {
  const auto known = processes_.find(KeyOf(machine, pid));
  if (known != processes_.end()) return known->second.space;
  constexpr SpaceId kGuestBit = 0x40000000;
  return kNobodysSpace | (machine == Machine::kGuest ? kGuestBit : 0) | (pid & (kGuestBit - 1));
}

SpaceId SpaceTracker::MappingSpace(CpuMode mode, uint32_t pid) const {
  const Machine machine = MachineOf(mode);
  return IsKernelMapping(mode, pid) ? KernelOf(machine) : UserSpace(machine, pid);
}

void SpaceTracker::OnMapping(CpuMode mode, uint32_t pid, uint64_t addr, uint64_t len) {
  if (IsKernelMapping(mode, pid) || session::ReachesBeyondMemory(addr, len)) return;
  Process& process = ProcessOf(MachineOf(mode), pid);
  if (!process.exec_pending) return;
  process = {next_++, false};
}

void SpaceTracker::Apply(const perfdata::Record& record) {
  const auto mode = static_cast<CpuMode>(record.misc & perfdata::kMiscCpuModeMask);
  if (const auto* mmap = std::get_if<perfdata::Mmap>(&record.body)) {
    OnMapping(mode, mmap->pid, mmap->addr, mmap->len);
  } else if (const auto* mmap2 = std::get_if<perfdata::Mmap2>(&record.body)) {
    OnMapping(mode, mmap2->pid, mmap2->addr, mmap2->len);
  } else if (const auto* comm = std::get_if<perfdata::Comm>(&record.body)) {
    if ((record.misc & perfdata::kMiscCommExec) == 0) return;
    ProcessOf(Machine::kHost, comm->pid).exec_pending = true;
  } else if (const auto* task = std::get_if<perfdata::Task>(&record.body)) {
    const bool is_fork = record.type == static_cast<uint32_t>(RecordType::kFork);
    if (!is_fork || task->pid == task->ppid) return;
    Process child;
    if ((record.misc & perfdata::kMiscForkExec) == 0) {
      child = ProcessOf(Machine::kHost, task->ppid);
    } else {
      child.space = next_++;
    }
    ProcessOf(Machine::kHost, task->pid) = child;
  }
}

}  // namespace stackreel::anonymize
