#include "tracer/needed_functions.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stackreel::tracer {

namespace {

using agent::StubKind;

struct NeededName {
  std::string_view name;
  StubKind stub;
};
constexpr auto kNeeded = std::to_array<NeededName>({
    // They walk the stack, and must find true return addresses there.
    {"_Unwind_RaiseException", StubKind::kBeforeUnwind},
    {"_Unwind_Resume", StubKind::kBeforeUnwind},
    {"_Unwind_Resume_or_Rethrow", StubKind::kBeforeUnwind},
    {"_Unwind_ForcedUnwind", StubKind::kBeforeUnwind},
    {"_Unwind_Backtrace", StubKind::kBeforeUnwind},
    {"backtrace", StubKind::kBeforeUnwind},
    {"longjmp", StubKind::kBeforeUnwind},
    {"_longjmp", StubKind::kBeforeUnwind},
    {"siglongjmp", StubKind::kBeforeUnwind},
    {"__longjmp_chk", StubKind::kBeforeUnwind},
    {"__cxa_begin_catch", StubKind::kAfterCatch},
    // Behind them what a thread has open cannot be asked for any more.
    {"_exit", StubKind::kBeforeEnd},
    {"_Exit", StubKind::kBeforeEnd},
    {"abort", StubKind::kBeforeEnd},
    {"execve", StubKind::kBeforeExec},
    {"execveat", StubKind::kBeforeExec},
    {"fexecve", StubKind::kBeforeExec},
    // They may install a filter of system calls, or block the signal of traps.
    {"prctl", StubKind::kBeforePrctl},
    {"syscall", StubKind::kBeforeSyscall},
    {"sigaction", StubKind::kBeforeSigaction},
    {"pthread_sigmask", StubKind::kBeforeSigmask},
    {"sigprocmask", StubKind::kBeforeSigmask},
});
static_assert(kNeeded.size() + 1 == kMostNeeded);

// Who has them.
constexpr std::array kModulesOfNeeded = std::to_array<std::string_view>(
    {"libgcc_s", "libc", "libstdc++", "libunwind", "libc++abi", "libpthread"});

bool IsNeeded(StubKind stub, NeededFor what) {
  if (stub == StubKind::kBeforeSigaction || stub == StubKind::kBeforeSigmask) return what.traps;
  return true;
}

std::optional<StubKind> StubNeededAt(std::string_view name, NeededFor what) {
  const auto* const at = std::ranges::find(kNeeded, name, &NeededName::name);
  if (at == kNeeded.end() || !IsNeeded(at->stub, what)) return std::nullopt;
  return at->stub;
}

}  // namespace

bool MayHaveNeeded(const TargetModule& module) {
  if (module.is_program) return true;
  const size_t slash = module.path.rfind('/');
  const std::string_view file = std::string_view(module.path).substr(slash + 1);
  return std::ranges::any_of(kModulesOfNeeded,
                             [file](std::string_view name) {
                               return file.starts_with(name) && file.size() > name.size() &&
                                      (file[name.size()] == '.' || file[name.size()] == '-');
                             }) ||
         file.starts_with("ld-musl");
}

std::optional<agent::StubKind> StubNeededAt(const ModuleFunction& function, NeededFor what) {
  if (const auto stub = StubNeededAt(function.name, what)) return stub;
  for (const std::string_view name : function.others) {
    if (const auto stub = StubNeededAt(name, what)) return stub;
  }
  return std::nullopt;
}

}  // namespace stackreel::tracer
