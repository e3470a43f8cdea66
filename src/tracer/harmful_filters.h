// What a target's own filters of system calls (seccomp) would do about those made for tracing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "os/stopped_process.h"
#include "tracedata/agent_memory.h"

namespace stackreel::tracer {

struct NamedCall {
  const char* name;
  int64_t number;
  std::array<uint64_t, 6> arguments = {};
};

// What /proc/PID/task/TID/status says of seccomp. It may change whenever the process runs.
struct SeccompStatus {
  enum class Mode : uint8_t { kNone, kStrict, kFilters };
  Mode mode = Mode::kNone;
  std::string filters;  // how many; empty where the kernel does not say (before 5.9)
  bool operator==(const SeccompStatus&) const = default;
};
SeccompStatus ReadSeccompStatus(uint32_t pid, uint32_t tid);

// Filters come by inheritance and are added only: who has as many as this process has its own.
class HarmfulFilters {
 public:
  explicit HarmfulFilters(uint32_t pid) : pid_(pid) {}

  // Filters that may not be looked at are harmful at nothing, says the user.
  void TrustUnseen() { trusts_unseen_ = true; }

  // Whether a process may be begun with. kUnsupported: a thread is in strict mode.
  [[nodiscard]] Status RefuseStrict() const;
  // Of a process that is held, what its filters leave to an agent. Refused (kUnsupported): a filter
  // of a thread would end it, or send it a signal, at a system call that the tracer has it make or
  // its agent makes. kPermission: it has filters that may not be looked at, and are not trusted.
  Result<tracedata::OwnCalls> LeftToAgent(os::StoppedProcess& process) const;
  // A thread that the system call does no harm to; it is held with its process. Errors as above;
  // kUnsupported also if each thread stopped at a signal.
  Result<uint32_t> ThreadFor(os::StoppedProcess& process, const NamedCall& call);
  // It has run since.
  void Forget() { unfiltered_.reset(); }

 private:
  [[nodiscard]] Error MayNotLook(const Error& error) const;
  [[nodiscard]] bool HasOwn(const SeccompStatus& status) const;

  uint32_t pid_;
  bool trusts_unseen_ = false;
  std::optional<uint32_t> unfiltered_;  // a thread without filters of its own
};

}  // namespace stackreel::tracer
