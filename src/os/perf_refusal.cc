#include "os/perf_refusal.h"

#include <errno.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <system_error>

#include "os/file.h"
#include "os/proc.h"

namespace stackreel::os {

namespace {

constexpr unsigned kCapSysPtrace = 19;
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;  // Linux 5.8

// A field of /proc/self/status, in the base it is written in.
uint64_t OwnStatusField(std::string_view text, std::string_view key, int base) {
  const std::string needle = fmt::format("\n{}:", key);
  const size_t at = text.find(needle);
  if (at == std::string_view::npos) return 0;
  return strtoull(std::string(text.substr(at + needle.size(), 40)).c_str(), nullptr, base);
}

std::string Name(const OpenRefusal& r) { return perfdata::AttrName(r.attr); }

// What was asked for, in the words of the paranoid levels.
std::string Scope(const OpenRefusal& r) {
  if (r.attr.type == perfdata::kTypeTracepoint) return "tracepoint data";
  if (r.pid == -1) return "whole CPUs";
  return (r.attr.flags & perfdata::kAttrExcludeKernel) != 0 ? "user space" : "the kernel";
}

constexpr char kCapabilityCure[] =
    "give the program the capability: sudo setcap cap_perfmon,cap_sys_ptrace+ep $(which stackreel)";

// The event's name, asked for in user space: "cycles:k" → "cycles:u".
std::string UserSpaceOnly(perfdata::Attr attr) {
  attr.flags &= ~uint64_t{perfdata::kAttrExcludeUser};
  attr.flags |= perfdata::kAttrExcludeKernel | perfdata::kAttrExcludeHv;
  return perfdata::AttrName(attr);
}

Error PermissionError(const OpenRefusal& r) {
  const int64_t needed = ParanoidLevelFor(r.attr, r.pid);
  if (r.privileged || (r.paranoid && *r.paranoid <= needed)) {
    if (r.filtered) {
      Error error(ErrorKind::kPermission,
                  "cannot open events: perf_event_open is refused by a seccomp filter, as "
                  "containers have by default");
      return std::move(error).WithCure(
          "start the container with --cap-add PERFMON, or with --security-opt seccomp=FILE of a "
          "profile that allows perf_event_open\nrecord from outside the container: -p PID");
    }
    if (r.pid > 0 && !r.may_trace_any) {
      Error error(ErrorKind::kPermission,
                  fmt::format("cannot record process {}: it belongs to another user, or may not be "
                              "traced (what is needed is ptrace access to it)",
                              r.pid));
      return std::move(error).WithCure(
          fmt::format("record as that user, or as root: sudo stackreel record -p {}", r.pid));
    }
    Error error(ErrorKind::kPermission,
                fmt::format("cannot open event {}: {}, though kernel.perf_event_paranoid is {} and "
                            "{} would do; a security module or kernel lockdown may forbid it",
                            Name(r), std::generic_category().message(r.error),
                            r.paranoid ? std::to_string(*r.paranoid) : "unknown", needed));
    return std::move(error).WithCure(
        "see what forbids it: cat /sys/kernel/security/lockdown; dmesg | tail");
  }
  Error error(ErrorKind::kPermission,
              fmt::format("may not record {}: kernel.perf_event_paranoid is {}, and {} or less is "
                          "needed without CAP_PERFMON",
                          Scope(r), r.paranoid ? std::to_string(*r.paranoid) : "unknown", needed));
  std::string cure;
  // User space only is a smaller wish, where it is enough.
  if (needed == 1 && r.paranoid.value_or(3) <= 2) {
    cure = fmt::format("record user space only: -e {}\n", UserSpaceOnly(r.attr));
  } else if (needed == 0 && r.paranoid.value_or(3) <= 2) {
    cure = "record one process of your own instead: -p PID, or -- COMMAND\n";
  }
  cure += kCapabilityCure;
  cure += fmt::format("\nallow it until the next boot: sudo sysctl kernel.perf_event_paranoid={}",
                      needed);
  return std::move(error).WithCure(cure);
}

Error InvalidError(const OpenRefusal& r) {
  if (ExceedsSampleRate(r)) {
    Error error(ErrorKind::kUsage,
                fmt::format("cannot sample {} times a second: kernel.perf_event_max_sample_rate is "
                            "{}",
                            r.attr.sample_period_or_freq, *r.max_sample_rate));
    return std::move(error).WithCure(fmt::format(
        "ask for fewer: -F {}\nraise the limit: sudo sysctl kernel.perf_event_max_sample_rate={}",
        *r.max_sample_rate, r.attr.sample_period_or_freq));
  }
  if ((r.attr.sample_type & perfdata::kSampleBranchStack) != 0) {
    Error error(ErrorKind::kUnsupported,
                fmt::format("cannot record branch stacks with {} here: this CPU or virtual machine "
                            "has no branch records",
                            Name(r)));
    return std::move(error).WithCure("unwind stacks instead: --call-graph dwarf");
  }
  if ((r.attr.flags & perfdata::kAttrUseClockid) != 0) {
    Error error(ErrorKind::kUnsupported,
                fmt::format("the kernel refused the settings of event {} with clock {}", Name(r),
                            r.attr.clockid));
    return std::move(error).WithCure("leave out --clockid");
  }
  return {ErrorKind::kUnsupported,
          fmt::format("the kernel refused the settings of event {}", Name(r))};
}

Error DescriptorError(const OpenRefusal& r) {
  if (r.error == ENFILE) {
    Error error(ErrorKind::kIo, "cannot open events: the whole machine has no descriptor left");
    return std::move(error).WithCure("raise the limit: sudo sysctl fs.file-max=4000000");
  }
  Error error(ErrorKind::kIo,
              fmt::format("cannot open events: an event needs a descriptor for each thread and "
                          "CPU, and the limit is {}",
                          r.descriptors));
  return std::move(error).WithCure(
      fmt::format("record fewer threads, or the whole machine: -a\nraise the limit: ulimit -n {}",
                  r.descriptors * 16));
}

Error UnsupportedError(const OpenRefusal& r) {
  if ((r.attr.sample_type & perfdata::kSampleBranchStack) != 0) return InvalidError(r);
  const bool hardware = r.attr.type == perfdata::kTypeHardware ||
                        r.attr.type == perfdata::kTypeHwCache || r.attr.type == perfdata::kTypeRaw;
  if (hardware) {
    Error error(
        ErrorKind::kUnsupported,
        fmt::format("event {} is not there: this machine shows no such hardware counter, as "
                    "most virtual machines do not",
                    Name(r)));
    return std::move(error).WithCure("take the CPU clock instead: -e cpu-clock");
  }
  return {ErrorKind::kUnsupported, fmt::format("this kernel does not support event {}", Name(r))};
}

}  // namespace

int64_t ParanoidLevelFor(const perfdata::Attr& attr, int pid) {
  const bool raw_tracepoint =
      attr.type == perfdata::kTypeTracepoint && (attr.sample_type & perfdata::kSampleRaw) != 0;
  if (raw_tracepoint) return -1;
  if (pid == -1) return 0;
  return (attr.flags & perfdata::kAttrExcludeKernel) != 0 ? 2 : 1;
}

bool ExceedsSampleRate(const OpenRefusal& r) {
  return r.attr.Has(perfdata::kAttrFreq) && r.max_sample_rate &&
         r.attr.sample_period_or_freq > static_cast<uint64_t>(*r.max_sample_rate);
}

OpenRefusal GatherRefusal(int error, const perfdata::Attr& attr, int pid, int cpu) {
  OpenRefusal out;
  out.error = error;
  out.attr = attr;
  out.pid = pid;
  out.cpu = cpu;
  out.paranoid = ReadNumberFile("/proc/sys/kernel/perf_event_paranoid");
  out.max_sample_rate = ReadNumberFile("/proc/sys/kernel/perf_event_max_sample_rate");
  out.max_stack = ReadNumberFile("/proc/sys/kernel/perf_event_max_stack");
  const std::string status = ReadTextFile("/proc/self/status").value_or("");
  const uint64_t effective = OwnStatusField(status, "CapEff", 16);
  const auto has = [effective](unsigned capability) {
    return ((effective >> capability) & 1) != 0;
  };
  out.privileged = has(kCapPerfmon) || has(kCapSysAdmin);
  out.may_trace_any = has(kCapSysPtrace);
  out.filtered = OwnStatusField(status, "Seccomp", 10) == 2;
  struct rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) out.descriptors = limit.rlim_cur;
  return out;
}

Error ExplainOpenRefusal(const OpenRefusal& r) {
  switch (r.error) {
    case EACCES:
    case EPERM:
      return PermissionError(r);
    case EINVAL:
    case E2BIG:
      return InvalidError(r);
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
    case ENXIO:
      return UnsupportedError(r);
    case EMFILE:
    case ENFILE:
      return DescriptorError(r);
    case ESRCH:
      return {ErrorKind::kNotFound, fmt::format("no process or thread {}", r.pid)};
    case EBUSY: {
      Error error(
          ErrorKind::kUnsupported,
          fmt::format("event {} is taken: somebody else has the counter for himself", Name(r)));
      return std::move(error).WithCure("see who counts: ls -l /proc/*/fd | grep perf_event");
    }
    case EOVERFLOW: {
      Error error(ErrorKind::kUnsupported,
                  fmt::format("callchains of {} frames are more than kernel.perf_event_max_stack, "
                              "which is {}",
                              r.attr.sample_max_stack, r.max_stack.value_or(0)));
      return std::move(error).WithCure(fmt::format(
          "raise it: sudo sysctl kernel.perf_event_max_stack={}", r.attr.sample_max_stack));
    }
    case ENOSYS:
      return {ErrorKind::kUnsupported,
              "this kernel has no perf_event_open: it was built without CONFIG_PERF_EVENTS, or it "
              "is not Linux's own"};
    default:
      return ErrnoError(r.error, fmt::format("cannot open event {}", Name(r)));
  }
}

}  // namespace stackreel::os
