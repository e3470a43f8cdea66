#include "cli/doctor.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "cli/doctor_tracing.h"
#include "os/file.h"
#include "os/proc.h"
#include "symfiles/symfiles.h"

namespace stackreel::cli {

namespace {

bool HasEffectiveCapability(unsigned capability) {
  const Result<std::string> status = os::ReadTextFile("/proc/self/status");
  if (!status) return false;
  const size_t at = status->find("CapEff:");
  if (at == std::string::npos) return false;
  const uint64_t set = std::strtoull(status->c_str() + at + 7, nullptr, 16);
  return ((set >> capability) & 1) != 0;
}

// The errno of opening an event, 0 if it opens.
int TryEvent(uint32_t type, uint64_t config, bool kernel, int pid, int cpu, bool build_id) {
  perf_event_attr attr = {};
  attr.size = PERF_ATTR_SIZE_VER5;
  attr.type = type;
  attr.config = config;
  attr.sample_period = 1000000;
  attr.disabled = 1;
  attr.exclude_kernel = kernel ? 0 : 1;
  attr.exclude_hv = 1;
  if (build_id) {
    attr.mmap = 1;
    attr.mmap2 = 1;
    attr.build_id = 1;
  }
  const os::Fd fd(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
  return fd.valid() ? 0 : errno;
}

std::string Number(const std::optional<int64_t>& value) {
  return value ? fmt::format("{}", *value) : "not there";
}

Check CheckSampling(const MachineFacts& facts) {
  Check check;
  check.name = "record your own programs";
  check.essential = true;
  if (facts.cpu_clock_error == 0) {
    check.found = "yes";
    return check;
  }
  check.state = CheckState::kMissing;
  check.found = fmt::format("no: {}", std::strerror(facts.cpu_clock_error));
  if (!facts.perf_event_paranoid) {
    check.effect = "this kernel has no perf events (CONFIG_PERF_EVENTS)";
    check.cures = {"boot a kernel with CONFIG_PERF_EVENTS=y"};
  } else if (*facts.perf_event_paranoid > 2) {
    check.effect = fmt::format("kernel.perf_event_paranoid is {}, 2 or less is needed",
                               *facts.perf_event_paranoid);
    check.cures = {"sudo setcap cap_perfmon+ep $(command -v stackreel)",
                   "sudo sysctl kernel.perf_event_paranoid=2"};
  } else {
    check.effect =
        "perf_event_open is refused although the settings allow it; a container's seccomp "
        "profile often does that";
    check.cures = {
        "docker run --cap-add=PERFMON (Docker 20.10 and later), or "
        "--security-opt seccomp=unconfined"};
  }
  return check;
}

Check CheckCounter(const MachineFacts& facts) {
  Check check;
  check.name = "hardware counter (cycles)";
  if (facts.cycles_error == 0) {
    check.found = "yes";
    return check;
  }
  check.state = CheckState::kLimited;
  check.found = fmt::format("no: {}", std::strerror(facts.cycles_error));
  check.effect = "samples come from cpu-clock, a timer: no skid control, none with interrupts off";
  if (facts.cycles_error == ENOENT || facts.cycles_error == EOPNOTSUPP) {
    check.cures = {
        "in a virtual machine: let its host pass the performance counters through (vPMU)"};
  }
  return check;
}

Check CheckScope(const std::string& name, int error, int needed, const MachineFacts& facts) {
  Check check;
  check.name = name;
  if (error == 0) {
    check.found = "yes";
    return check;
  }
  check.state = CheckState::kLimited;
  check.found = fmt::format("no: {}", std::strerror(error));
  check.effect = fmt::format(
      "kernel.perf_event_paranoid is {}, {} or less is needed without "
      "CAP_PERFMON",
      Number(facts.perf_event_paranoid), needed);
  if (needed == 1) check.cures.emplace_back("record user space only: -e cycles:u or --all-user");
  check.cures.emplace_back("sudo setcap cap_perfmon+ep $(command -v stackreel)");
  check.cures.emplace_back(fmt::format("sudo sysctl kernel.perf_event_paranoid={}", needed));
  return check;
}

Check CheckKernelSymbols(const MachineFacts& facts) {
  Check check;
  check.name = "names of kernel functions";
  const bool readable = facts.kptr_restrict &&
                        (*facts.kptr_restrict == 0 || (*facts.kptr_restrict == 1 && facts.is_root));
  check.found = fmt::format("kernel.kptr_restrict is {}", Number(facts.kptr_restrict));
  if (readable && (facts.is_root || facts.perf_event_paranoid.value_or(2) <= 1)) return check;
  check.state = CheckState::kLimited;
  check.effect = "kernel frames show addresses, not names";
  check.cures = {"run as root", "sudo sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"};
  return check;
}

// No check, since nothing depends on it: return addresses are stripped whatever the CPU signs.
Check DescribePointerAuthentication(const MachineFacts& facts) {
  Check check;
  check.name = "pointer authentication";
  if (!facts.pointer_authentication) {
    check.found = "this CPU or kernel has none";
    return check;
  }
  const os::PointerAuthentication& pac = *facts.pointer_authentication;
  std::string keys;
  if (pac.enabled_keys) {
    constexpr const char* kNames[] = {"IA", "IB", "DA", "DB", "GA"};  // PR_PAC_AP*KEY, by bit
    for (size_t bit = 0; bit < std::size(kNames); ++bit) {
      if (((*pac.enabled_keys >> bit) & 1) == 0) continue;
      keys += keys.empty() ? "" : " ";
      keys += kNames[bit];
    }
    if (keys.empty()) keys = "none";
  } else {
    keys = "not told by this kernel";
  }
  check.found = fmt::format("{}-bit addresses, mask {:#018x}, keys {}",
                            std::countr_zero(pac.insn_mask), pac.insn_mask, keys);
  return check;
}

// No check either: whichever way they come, they are the right ones on the kernels there are.
Check DescribeMaskRoute(const MachineFacts& facts) {
  Check check;
  check.name = "masks in recordings";
  check.found = os::DescribeMasks(os::ChooseMaskRoute(facts.masks));
  return check;
}

Check CheckRing(const MachineFacts& facts) {
  Check check;
  check.name = "ring memory";
  check.found = fmt::format("kernel.perf_event_mlock_kb is {}", Number(facts.mlock_kb));
  if (facts.is_root || facts.has_perfmon_capability || facts.mlock_kb.value_or(0) >= 516) {
    return check;
  }
  check.state = CheckState::kLimited;
  check.effect = "rings are small: samples may be lost at high frequencies";
  check.cures = {"lower -F", "sudo sysctl kernel.perf_event_mlock_kb=2048"};
  return check;
}

Check CheckOpenFiles(const MachineFacts& facts) {
  Check check;
  check.name = "open files";
  check.found = fmt::format("limit {}, {} CPUs", facts.open_files_limit, facts.cpus);
  // One descriptor an event and CPU for each thread; a margin for files.
  if (facts.open_files_limit >= uint64_t{64} + uint64_t{16} * facts.cpus) return check;
  check.state = CheckState::kLimited;
  check.effect = "programs with many threads may not be attachable";
  check.cures = {"ulimit -n 65536"};
  return check;
}

Check CheckTracepoints(const MachineFacts& facts) {
  Check check;
  check.name = "tracepoints";
  check.found = facts.tracefs_readable ? "yes" : "no: tracefs cannot be read";
  if (facts.tracefs_readable) return check;
  check.state = CheckState::kLimited;
  check.effect = "events such as sched:sched_switch cannot be recorded";
  check.cures = {"sudo mount -t tracefs nodev /sys/kernel/tracing",
                 "sudo chmod -R a+rX /sys/kernel/tracing"};
  return check;
}

Check CheckFiles(const MachineFacts& facts) {
  Check check;
  check.name = "build-id cache";
  check.found = facts.buildid_dir.empty() ? "none" : facts.buildid_dir;
  if (facts.buildid_dir_writable) return check;
  check.state = CheckState::kLimited;
  check.found += " (cannot be written)";
  check.effect = "the vDSO is not kept: recordings moved elsewhere lose a frame in it";
  check.cures = {"PERF_BUILDID_DIR=DIR stackreel record …"};
  return check;
}

Check CheckDebuginfod(const MachineFacts& facts) {
  Check check;
  check.name = "debuginfod";
  if (facts.debuginfod_urls.empty()) {
    check.found = "off: DEBUGINFOD_URLS is not set";
    return check;
  }
  check.found = facts.debuginfod_urls;
  if (facts.debuginfod_library) return check;
  check.state = CheckState::kLimited;
  check.effect = "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 is not installed";
  check.cures = {"sudo apt install libdebuginfod1"};
  return check;
}

}  // namespace

bool UseColor(const GlobalOptions& global) {
  if (global.color != ColorWhen::kAuto) return global.color == ColorWhen::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && isatty(STDOUT_FILENO) != 0;
}

MachineFacts ReadMachineFacts() {
  MachineFacts facts;
  utsname name = {};
  if (uname(&name) == 0) {
    facts.kernel_release = name.release;
    facts.machine = name.machine;
    facts.pointer_authentication = os::LearnPointerAuthentication();
    facts.masks = os::ProbeKernelMasks();
  }
  facts.is_root = geteuid() == 0;
  constexpr unsigned kCapPerfmon = 38;
  facts.has_perfmon_capability =
      HasEffectiveCapability(kCapPerfmon) || HasEffectiveCapability(CAP_SYS_ADMIN);
  const std::string sysctl = "/proc/sys/kernel/";
  facts.perf_event_paranoid = os::ReadNumberFile(sysctl + "perf_event_paranoid");
  facts.kptr_restrict = os::ReadNumberFile(sysctl + "kptr_restrict");
  facts.max_sample_rate = os::ReadNumberFile(sysctl + "perf_event_max_sample_rate");
  facts.mlock_kb = os::ReadNumberFile(sysctl + "perf_event_mlock_kb");
  facts.max_stack = os::ReadNumberFile(sysctl + "perf_event_max_stack");
  facts.ptrace_scope = os::ReadNumberFile(sysctl + "yama/ptrace_scope");
  facts.cycles_error = TryEvent(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, 0, -1, false);
  constexpr uint64_t kCpuClock = PERF_COUNT_SW_CPU_CLOCK;
  facts.cpu_clock_error = TryEvent(PERF_TYPE_SOFTWARE, kCpuClock, false, 0, -1, false);
  facts.kernel_error = TryEvent(PERF_TYPE_SOFTWARE, kCpuClock, true, 0, -1, false);
  facts.system_wide_error = TryEvent(PERF_TYPE_SOFTWARE, kCpuClock, true, -1, 0, false);
  facts.build_id_records = TryEvent(PERF_TYPE_SOFTWARE, kCpuClock, false, 0, -1, true) == 0;
  for (const char* path : {"/sys/kernel/tracing/events", "/sys/kernel/debug/tracing/events"}) {
    facts.tracefs_readable = facts.tracefs_readable || access(path, R_OK | X_OK) == 0;
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.open_files_limit = limit.rlim_max;
  facts.cpus = os::AvailableCpuCount();
  facts.tracing = os::LearnTracingAbilities();
  facts.buildid_dir = symfiles::DefaultBuildIdDir();
  // The directory may not be there yet: then the nearest one above it must be writable.
  for (std::string dir = facts.buildid_dir; !dir.empty(); dir.resize(dir.rfind('/'))) {
    if (access(dir.c_str(), F_OK) != 0) continue;
    facts.buildid_dir_writable = access(dir.c_str(), W_OK | X_OK) == 0;
    break;
  }
  if (const char* urls = std::getenv("DEBUGINFOD_URLS"); urls != nullptr) {
    facts.debuginfod_urls = urls;
  }
  if (void* library = dlopen("libdebuginfod.so.1", RTLD_LAZY); library != nullptr) {
    facts.debuginfod_library = true;
    dlclose(library);
  }
  return facts;
}

std::vector<Check> Diagnose(const MachineFacts& facts) {
  std::vector<Check> checks;
  Check kernel;
  kernel.name = "kernel";
  kernel.found = facts.kernel_release + " " + facts.machine;
  const bool is_arm64 = facts.machine == "aarch64";
  if (facts.machine != "x86_64" && !is_arm64) {
    kernel.state = CheckState::kMissing;
    kernel.essential = true;
    kernel.effect = "recording works on x86_64 and aarch64; recordings can be read anywhere";
  }
  checks.push_back(kernel);
  checks.push_back(CheckSampling(facts));
  checks.push_back(CheckCounter(facts));
  checks.push_back(CheckScope("kernel part of call chains", facts.kernel_error, 1, facts));
  checks.push_back(CheckScope("whole machine (-a)", facts.system_wide_error, 0, facts));
  if (is_arm64) {
    checks.push_back(DescribePointerAuthentication(facts));
    if (facts.pointer_authentication) checks.push_back(DescribeMaskRoute(facts));
  }
  checks.push_back(CheckKernelSymbols(facts));
  Check rate;
  rate.name = "highest frequency";
  rate.found =
      fmt::format("kernel.perf_event_max_sample_rate is {}", Number(facts.max_sample_rate));
  if (facts.max_sample_rate && *facts.max_sample_rate < 997) {
    rate.state = CheckState::kLimited;
    rate.effect = "the default of 997 samples a second is more than allowed";
    rate.cures = {fmt::format("-F {}", *facts.max_sample_rate),
                  "sudo sysctl kernel.perf_event_max_sample_rate=100000"};
  }
  checks.push_back(rate);
  checks.push_back(CheckRing(facts));
  checks.push_back(CheckOpenFiles(facts));
  Check build_ids;
  build_ids.name = "build-ids in records";
  build_ids.found = facts.build_id_records ? "by the kernel" : "read from files at record";
  checks.push_back(build_ids);
  checks.push_back(CheckTracepoints(facts));
  checks.push_back(CheckFiles(facts));
  checks.push_back(CheckDebuginfod(facts));
  AppendTracingChecks(facts, checks);
  return checks;
}

}  // namespace stackreel::cli
