// What this machine allows a profiler to do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "os/kernel_masks.h"
#include "os/pointer_authentication.h"
#include "os/tracing_abilities.h"

namespace stackreel::cli {

enum class CheckState : uint8_t { kOk, kLimited, kMissing };

struct Check {
  std::string name;
  CheckState state = CheckState::kOk;
  std::string found;               // the value read
  std::string effect;              // what does not work because of it
  std::vector<std::string> cures;  // the smallest first
  bool essential = false;          // nothing can be recorded without it
};

// What the checks look at; tests hand in their own.
struct MachineFacts {
  std::string kernel_release, machine;
  bool is_root = false;
  bool has_perfmon_capability = false;         // CAP_PERFMON or CAP_SYS_ADMIN, effective
  std::optional<int64_t> perf_event_paranoid;  // unset: no perf events in this kernel
  std::optional<int64_t> kptr_restrict;
  std::optional<int64_t> max_sample_rate;
  std::optional<int64_t> mlock_kb;
  std::optional<int64_t> max_stack;
  std::optional<int64_t> ptrace_scope;
  int cycles_error = 0;     // errno of opening the hardware counter; 0: it counts
  int cpu_clock_error = 0;  // of opening cpu-clock for this process, user space only
  int kernel_error = 0;     // of opening cpu-clock with kernel space
  int system_wide_error = 0;
  bool build_id_records = false;  // attr flag build_id (Linux 5.12)
  bool tracefs_readable = false;
  uint64_t open_files_limit = 0;
  uint32_t cpus = 0;
  os::MaskProbe masks;  // arm64: how this kernel says masks of pointer authentication
  std::string buildid_dir;
  bool buildid_dir_writable = false;
  std::string debuginfod_urls;
  bool debuginfod_library = false;
  os::TracingAbilities tracing;
  std::optional<os::PointerAuthentication> pointer_authentication;  // arm64 that has it
};

MachineFacts ReadMachineFacts();
std::vector<Check> Diagnose(const MachineFacts& facts);
inline std::vector<Check> RunChecks() { return Diagnose(ReadMachineFacts()); }

// Whether to colour standard output.
bool UseColor(const GlobalOptions& global);

}  // namespace stackreel::cli
