// What CPU and kernel let a tracer of functions do.
#pragma once

#include <cstdint>
#include <string>

namespace stackreel::os {

// The counter that rdtsc reads.
struct TimestampCounter {
  // It counts at one rate whatever the CPU's frequency and sleep (CPUID 80000007h, EDX bit 8).
  bool is_invariant = false;
  // The kernel keeps its time by it, so it has found it steady and the same on all CPUs. Virtual
  // machines often show no invariant bit, and have this.
  bool is_kernel_clock = false;
  std::string kernel_clock;  // what it keeps its time by: tsc, kvm-clock, hpet …

  [[nodiscard]] bool IsSteady() const { return is_invariant || is_kernel_clock; }
};
TimestampCounter LearnTimestampCounter();

// Errors are errno's; 0: it works.
struct TracingAbilities {
  TimestampCounter counter;
  int ptrace_error = 0;         // of taking hold of a child of ours
  int code_write_error = 0;     // of writing to code that may not be written, through /proc/PID/mem
  int memfd_error = 0;          // of a file in memory
  bool can_sync_cores = false;  // membarrier(2), PRIVATE_EXPEDITED_SYNC_CORE
  bool has_shadow_stacks = false;       // for user space, by CPU and kernel
  bool can_deny_write_execute = false;  // prctl(2), PR_SET_MDWE: programs may ask for that
};
TracingAbilities LearnTracingAbilities();

// What memfd_create(2) is asked with for memory that nobody executes: to be closed by exec and,
// where the kernel knows that (Linux 6.3), never executable. With vm.memfd_noexec=2 some refuse
// files of which neither is said, and warn of those otherwise.
uint32_t MemfdFlags();

}  // namespace stackreel::os
