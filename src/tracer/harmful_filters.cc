#include "tracer/harmful_filters.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "os/seccomp_filter.h"
#include "os/tracing_abilities.h"

namespace stackreel::tracer {

namespace {

struct NamedCall {
  const char* name;
  int number;
  std::array<uint64_t, 6> arguments = {};
};

#if defined(__x86_64__)
// With the arguments that filters look at: sizes and addresses are not among them.
const std::vector<NamedCall>& CallsOfTracing() {
  constexpr uint64_t kSize = 1 << 20;
  constexpr uint64_t kNoFile = ~uint64_t{0};
  constexpr uint64_t kPrivate = MAP_PRIVATE | MAP_ANONYMOUS;
  static const std::vector<NamedCall> kCalls = {
      {"mmap", SYS_mmap, {0, kSize, PROT_NONE, kPrivate | MAP_NORESERVE, kNoFile, 0}},
      {"mmap", SYS_mmap, {0, kSize, PROT_READ | PROT_EXEC, kPrivate | MAP_FIXED, kNoFile, 0}},
      {"mmap", SYS_mmap, {0, kSize, PROT_READ | PROT_WRITE, kPrivate | MAP_FIXED, kNoFile, 0}},
      {"mmap", SYS_mmap, {0, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, 3, 0}},
      {"munmap", SYS_munmap, {0, kSize}},
      {"madvise", SYS_madvise, {0, kSize, MADV_DONTNEED}},
      {"memfd_create", SYS_memfd_create, {0, os::MemfdFlags()}},
      {"close", SYS_close, {3}},
      // The agent's own.
      {"futex", SYS_futex, {}},
      {"rt_sigprocmask", SYS_rt_sigprocmask, {}},
      {"gettid", SYS_gettid, {}},
      {"getpid", SYS_getpid, {}},
      {"tkill", SYS_tkill, {}},
      {"sched_yield", SYS_sched_yield, {}},
      {"sigaltstack", SYS_sigaltstack, {}},
      {"clock_gettime", SYS_clock_gettime, {}},
  };
  return kCalls;
}
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
const std::vector<NamedCall>& CallsOfTracing() {
  static const std::vector<NamedCall> kNone;
  return kNone;
}
constexpr uint32_t kArchitecture = 0;
#endif

const char* HarmfulCall(const std::vector<os::SeccompFilter>& filters) {
  for (const NamedCall& call : CallsOfTracing()) {
    seccomp_data data = {};
    data.nr = call.number;
    data.arch = kArchitecture;
    for (size_t i = 0; i < call.arguments.size(); ++i) data.args[i] = call.arguments[i];
    if (os::IsHarmful(os::StrictestAction(filters, data))) return call.name;
  }
  return nullptr;
}

// Filters come by inheritance and are added only: who has as many as this process has its own.
bool HasFiltersOfItsOwn(uint32_t pid) {
  if (StatusLine(pid, "Seccomp") != "2") return false;
  return StatusLine(pid, "Seccomp_filters") !=
         StatusLine(static_cast<uint32_t>(getpid()), "Seccomp_filters");
}

}  // namespace

Status RefuseHarmfulFilters(Target& target, bool force) {
  const uint32_t pid = target.pid();
  if (!HasFiltersOfItsOwn(pid)) return {};
  const auto all = target.threads().ReadSeccompFilters();
  if (!all) {
    if (force) return {};
    if (all.error().kind == ErrorKind::kNotFound) return Fail(all.error());
    return Fail(
        Error(ErrorKind::kPermission,
              fmt::format("process {} has a seccomp filter, which cannot be looked at ({}): "
                          "it may kill the process at a system call made for tracing",
                          pid, all.error().message))
            .WithCure("run as root, outside of containers\nor, if you know that the filter "
                      "kills at none: --force"));
  }
  for (const std::vector<os::SeccompFilter>& filters : *all) {
    const char* call = HarmfulCall(filters);
    if (call == nullptr) continue;
    return Fail(Error(ErrorKind::kUnsupported,
                      fmt::format("process {} has a seccomp filter that would kill it at {}, a "
                                  "system call made for tracing",
                                  pid, call))
                    .WithCure("trace it before it installs the filter, or without that"));
  }
  return {};
}

}  // namespace stackreel::tracer
