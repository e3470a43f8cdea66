// Which address space a process's addresses are in, over time.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "perfdata/record.h"

namespace stackreel::anonymize {

// The kernel and processes of the host, or of its guests: machines of their own.
enum class Machine : uint8_t { kHost, kGuest };

// A number for each address space there was, in the order of their first mapping or mention. A
// space begins with a process or with its exec; a forked child that does not call exec has its
// parent's, which it goes on sharing: what the two map later lies apart or is the same.
using SpaceId = uint32_t;
inline constexpr SpaceId kHostKernel = 0;
inline constexpr SpaceId kGuestKernel = 1;
inline constexpr SpaceId kFirstUserSpace = 2;
// From here on: of processes that no record mapped anything for or forked; the number has their
// pid.
inline constexpr SpaceId kNobodysSpace = 0x80000000;

constexpr SpaceId KernelOf(Machine machine) {
  return machine == Machine::kHost ? kHostKernel : kGuestKernel;
}

Machine MachineOf(perfdata::CpuMode mode);

// Follows MMAP, MMAP2, COMM and FORK records in order of time, by the rules of session::Session.
// Fed the same records it gives the same numbers.
class SpaceTracker {
 public:
  void Apply(const perfdata::Record& record);
  // The space of the process now.
  [[nodiscard]] SpaceId UserSpace(Machine machine, uint32_t pid) const;
  // The space that an MMAP or MMAP2 of this mode and process is about. Apply it first.
  [[nodiscard]] SpaceId MappingSpace(perfdata::CpuMode mode, uint32_t pid) const;
  // One more than the largest number given.
  [[nodiscard]] SpaceId count() const { return next_; }

 private:
  struct Process {
    SpaceId space = 0;
    // It has called exec; until the new program is mapped its addresses are those of the call.
    bool exec_pending = false;
  };
  Process& ProcessOf(Machine machine, uint32_t pid);
  void OnMapping(perfdata::CpuMode mode, uint32_t pid, uint64_t addr, uint64_t len);

  std::unordered_map<uint64_t, Process> processes_;  // by machine and pid
  SpaceId next_ = kFirstUserSpace;
};

}  // namespace stackreel::anonymize
