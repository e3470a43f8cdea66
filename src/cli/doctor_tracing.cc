#include "cli/doctor_tracing.h"

#include <fmt/format.h>

#include <cstring>
#include <string>

namespace stackreel::cli {

namespace {

Check Yes(const char* name) {
  Check check;
  check.name = name;
  check.found = "yes";
  return check;
}
void Limit(Check& check, std::string found, std::string effect) {
  check.state = CheckState::kLimited;
  check.found = std::move(found);
  check.effect = std::move(effect);
}
std::string No(int error) { return fmt::format("no: {}", std::strerror(error)); }

// https://www.kernel.org/doc/html/latest/admin-guide/LSM/Yama.html
Check CheckAttach(const MachineFacts& facts) {
  Check check = Yes("trace: running programs");
  if (facts.tracing.ptrace_error != 0) {
    Limit(check, No(facts.tracing.ptrace_error),
          "nothing can be traced, not even a command: ptrace is refused");
    if (facts.ptrace_scope.value_or(0) == 3) {
      check.cures = {"kernel.yama.ptrace_scope is 3, which holds until the next boot"};
    } else {
      check.cures = {"docker run --cap-add=SYS_PTRACE, or --security-opt seccomp=unconfined"};
    }
    return check;
  }
  if (!facts.ptrace_scope || *facts.ptrace_scope == 0) return check;
  check.found = fmt::format("kernel.yama.ptrace_scope is {}", *facts.ptrace_scope);
  if (facts.is_root) return check;
  check.state = CheckState::kLimited;
  check.effect = "you can trace commands that stackreel starts, but not attach to others";
  check.cures = {"start it traced: stackreel trace -- COMMAND",
                 "sudo sysctl kernel.yama.ptrace_scope=0", "run as root"};
  return check;
}

Check CheckCode(const os::TracingAbilities& tracing) {
  Check check = Yes("trace: change code");
  if (tracing.code_write_error == 0) return check;
  Limit(check, No(tracing.code_write_error),
        "nothing can be patched: /proc/PID/mem does not override the protection of code");
  check.cures = {"boot with proc_mem.force_override=always"};
  return check;
}

Check CheckBuffer(const os::TracingAbilities& tracing) {
  Check check = Yes("trace: shared buffer (memfd)");
  if (tracing.memfd_error == 0) return check;
  Limit(check, No(tracing.memfd_error), "nothing can be traced: there is no memory to share");
  check.cures = {
      "have whoever filters system calls here (seccomp, a container) allow memfd_create"};
  return check;
}

Check CheckClock(const os::TracingAbilities& tracing) {
  Check check = Yes("trace: clock (invariant TSC)");
  if (tracing.counter.is_invariant) return check;
  if (tracing.counter.is_kernel_clock) {
    check.found = "yes: the kernel keeps its time by it";
    return check;
  }
  Limit(check,
        fmt::format("no: the kernel keeps its time by {}", tracing.counter.kernel_clock.empty()
                                                               ? "another clock"
                                                               : tracing.counter.kernel_clock),
        "trace takes times from the kernel, by a system call each, which makes calls slower");
  check.cures = {"in a virtual machine: let its host pass the invariant TSC through (invtsc)"};
  return check;
}

Check DescribeShadowStacks(const os::TracingAbilities& tracing) {
  Check check = Yes("trace: shadow stacks (CET)");
  check.found = tracing.has_shadow_stacks
                    ? "there are; of programs that use them only what has exit sleds is timed"
                    : "none: return addresses can be changed";
  return check;
}

Check DescribeBarrier(const os::TracingAbilities& tracing) {
  Check check = Yes("trace: membarrier");
  if (!tracing.can_sync_cores) check.found = "no SYNC_CORE: threads are stopped to be synchronised";
  return check;
}

Check DescribeDenial(const os::TracingAbilities& tracing) {
  Check check = Yes("trace: MDWE");
  check.found = tracing.can_deny_write_execute ? "programs that use it can be traced"
                                               : "this kernel has none";
  return check;
}

}  // namespace

void AppendTracingChecks(const MachineFacts& facts, std::vector<Check>& checks) {
  if (facts.machine != "x86_64") {
    Check check = Yes("trace");
    Limit(check, "no", "functions are traced on x86_64 only; traces can be shown anywhere");
    checks.push_back(std::move(check));
    return;
  }
  checks.push_back(CheckAttach(facts));
  checks.push_back(CheckCode(facts.tracing));
  checks.push_back(CheckBuffer(facts.tracing));
  checks.push_back(CheckClock(facts.tracing));
  checks.push_back(DescribeShadowStacks(facts.tracing));
  checks.push_back(DescribeBarrier(facts.tracing));
  checks.push_back(DescribeDenial(facts.tracing));
}

}  // namespace stackreel::cli
