// Why the kernel refused an event, and what would help.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "perfdata/attr.h"

namespace stackreel::os {

// What was asked for, and what this machine and this process are like.
struct OpenRefusal {
  int error = 0;  // errno of perf_event_open(2)
  perfdata::Attr attr;
  int pid = 0;  // as passed: -1 every task
  int cpu = -1;

  std::optional<int64_t> paranoid;         // /proc/sys/kernel/perf_event_paranoid
  std::optional<int64_t> max_sample_rate;  // /proc/sys/kernel/perf_event_max_sample_rate
  std::optional<int64_t> max_stack;        // /proc/sys/kernel/perf_event_max_stack
  bool privileged = false;                 // CAP_PERFMON or CAP_SYS_ADMIN is effective
  bool may_trace_any = false;              // CAP_SYS_PTRACE is effective
  bool filtered = false;                   // a seccomp filter is in force (a container's, mostly)
  uint64_t descriptors = 0;                // RLIMIT_NOFILE
};
// Fills in what this machine says.
OpenRefusal GatherRefusal(int error, const perfdata::Attr& attr, int pid, int cpu);

// The highest perf_event_paranoid at which an ordinary user may open that event (kernel/events/
// core.c, perf_allow_cpu, _kernel and _tracepoint): 2 user space of one's own tasks, 1 the kernel
// too, 0 whole CPUs, -1 raw tracepoints.
int64_t ParanoidLevelFor(const perfdata::Attr& attr, int pid);

// Sampling faster than the kernel's limit, which it refuses with a mere EINVAL.
bool ExceedsSampleRate(const OpenRefusal& refusal);

// An error that says what was read, what would be needed, and the smallest cure first.
Error ExplainOpenRefusal(const OpenRefusal& refusal);

}  // namespace stackreel::os
