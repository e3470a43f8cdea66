#include "tracer/harmful_filters.h"

#include <fmt/format.h>
#include <linux/audit.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "os/proc.h"
#include "os/seccomp_filter.h"
#include "os/tracing_abilities.h"

namespace stackreel::tracer {

namespace {

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
      {"rt_sigreturn", SYS_rt_sigreturn, {}},
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

bool IsHarmfulAt(const std::vector<os::SeccompFilter>& filters, const NamedCall& call) {
  seccomp_data data = {};
  data.nr = static_cast<int>(call.number);
  data.arch = kArchitecture;
  for (size_t i = 0; i < call.arguments.size(); ++i) data.args[i] = call.arguments[i];
  return os::IsHarmful(os::StrictestAction(filters, data));
}

const char* HarmfulCall(const std::vector<os::SeccompFilter>& filters) {
  for (const NamedCall& call : CallsOfTracing()) {
    if (IsHarmfulAt(filters, call)) return call.name;
  }
  return nullptr;
}

Error WouldKill(uint32_t pid, const char* call) {
  return Error(ErrorKind::kUnsupported,
               fmt::format("process {} has a seccomp filter that would kill it at {}, a system "
                           "call made for tracing",
                           pid, call))
      .WithCure("trace it before it installs the filter, or without that");
}

Error IsStrict(uint32_t pid, uint32_t tid) {
  return Error(ErrorKind::kUnsupported,
               fmt::format("thread {} of process {} is under strict seccomp: the kernel would kill "
                           "it at the first system call made for tracing",
                           tid, pid))
      .WithCure("trace it before it calls prctl(PR_SET_SECCOMP), or without that");
}

}  // namespace

SeccompStatus ReadSeccompStatus(uint32_t pid, uint32_t tid) {
  SeccompStatus status;
  const auto text = os::ReadTextFile(fmt::format("/proc/{}/task/{}/status", pid, tid));
  if (!text) return status;
  const std::string_view mode = os::StatusValue(*text, "Seccomp");
  if (mode == "1") status.mode = SeccompStatus::Mode::kStrict;
  if (mode != "2") return status;
  status.mode = SeccompStatus::Mode::kFilters;
  status.filters = os::StatusValue(*text, "Seccomp_filters");
  return status;
}

bool HarmfulFilters::HasOwn(const SeccompStatus& status) const {
  if (status.mode != SeccompStatus::Mode::kFilters) return false;
  const auto self = static_cast<uint32_t>(getpid());
  return status != ReadSeccompStatus(self, self);
}

Error HarmfulFilters::MayNotLook(const Error& error) const {
  if (error.kind == ErrorKind::kNotFound) return error;
  return Error(
             ErrorKind::kPermission,
             fmt::format("process {} has a seccomp filter, which cannot be looked at ({}): it may "
                         "kill the process at a system call made for tracing",
                         pid_, error.message))
      .WithCure(
          "run as root, outside of containers\nor, if you know that the filter kills at none: "
          "--force");
}

Status HarmfulFilters::RefuseStrict() const {
  for (const uint32_t tid : os::ListThreads(pid_)) {
    if (ReadSeccompStatus(pid_, tid).mode == SeccompStatus::Mode::kStrict) {
      return Fail(IsStrict(pid_, tid));
    }
  }
  return {};
}

Result<tracedata::OwnCalls> HarmfulFilters::LeftToAgent(os::StoppedProcess& process) const {
  TRY(RefuseStrict());
  const bool any = std::ranges::any_of(process.threads(), [this](const auto& thread) {
    return HasOwn(ReadSeccompStatus(thread.pid, thread.tid));
  });
  if (!any) return tracedata::OwnCalls::kAny;
  const auto all = process.ReadSeccompFilters();
  if (!all) {
    if (!trusts_unseen_) return Fail(MayNotLook(all.error()));
    return tracedata::OwnCalls::kFew;
  }
  for (const std::vector<os::SeccompFilter>& filters : *all) {
    if (const char* call = HarmfulCall(filters); call != nullptr) {
      return Fail(WouldKill(pid_, call));
    }
  }
  return tracedata::OwnCalls::kAny;
}

Result<uint32_t> HarmfulFilters::ThreadFor(os::StoppedProcess& process, const NamedCall& call) {
  if (unfiltered_) return *unfiltered_;
  Error error(ErrorKind::kUnsupported,
              fmt::format("all threads of process {} are at a signal; try again", pid_));
  for (const uint32_t tid : process.SystemCallers()) {
    const SeccompStatus status = ReadSeccompStatus(pid_, tid);
    if (status.mode == SeccompStatus::Mode::kStrict) {
      error = IsStrict(pid_, tid);
      continue;
    }
    if (!HasOwn(status)) {
      unfiltered_ = tid;
      return tid;
    }
    const auto filters = process.ReadSeccompFilters(tid);
    if (!filters && trusts_unseen_) return tid;
    if (filters && !IsHarmfulAt(*filters, call)) return tid;
    error = filters ? WouldKill(pid_, call.name) : MayNotLook(filters.error());
  }
  return Fail(std::move(error));
}

}  // namespace stackreel::tracer
