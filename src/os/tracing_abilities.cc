#include "os/tracing_abilities.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/memfd.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdint>

#include "os/file.h"

namespace stackreel::os {

namespace {

int PtraceError() {
  const pid_t child = fork();
  if (child < 0) return errno;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (true) pause();
  }
  const int error = ptrace(PTRACE_SEIZE, child, nullptr, nullptr) == 0 ? 0 : errno;
  kill(child, SIGKILL);
  while (waitpid(child, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  return error;
}

// Since Linux 6.12 a kernel can be told not to (proc_mem.force_override=).
int CodeWriteError() {
  const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const page = mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno;
  int error = 0;
  const Fd memory(open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  const uint8_t byte = 0xc3;
  if (!memory.valid() ||
      pwrite(memory.get(), &byte, 1, static_cast<off_t>(reinterpret_cast<uintptr_t>(page))) != 1) {
    error = errno;
  }
  munmap(page, size);
  return error;
}

Fd MakeMemfd(uint32_t flags) {
  return Fd(static_cast<int>(syscall(SYS_memfd_create, "stackreel", flags)));
}

int MemfdError() { return MakeMemfd(MemfdFlags()).valid() ? 0 : errno; }

bool CpuFlag(const char* flag) {
  const auto text = ReadTextFile("/proc/cpuinfo");
  if (!text) return false;
  const size_t at = text->find("\nflags");
  if (at == std::string::npos) return false;
  const std::string line = text->substr(at, text->find('\n', at + 1) - at) + " ";
  return line.contains(std::string(" ") + flag + " ");
}

}  // namespace

TimestampCounter LearnTimestampCounter() {
  TimestampCounter counter;
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned kPowerLeaf = 0x80000007;
  constexpr unsigned kInvariant = 1 << 8;
  if (__get_cpuid(kPowerLeaf, &eax, &ebx, &ecx, &edx) != 0) {
    counter.is_invariant = (edx & kInvariant) != 0;
  }
#endif
  auto clock = ReadTextFile("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  if (clock) {
    while (clock->ends_with('\n')) clock->pop_back();
    counter.kernel_clock = std::move(*clock);
  }
  counter.is_kernel_clock = counter.kernel_clock == "tsc";
  return counter;
}

TracingAbilities LearnTracingAbilities() {
  TracingAbilities abilities;
  abilities.counter = LearnTimestampCounter();
  abilities.ptrace_error = PtraceError();
  abilities.code_write_error = CodeWriteError();
  abilities.memfd_error = MemfdError();
  const long barriers = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  abilities.can_sync_cores =
      barriers > 0 && (barriers & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) != 0;
  abilities.has_shadow_stacks = CpuFlag("user_shstk");
  constexpr int kGetDenyWriteExecute = 66;  // PR_GET_MDWE
  abilities.can_deny_write_execute = prctl(kGetDenyWriteExecute, 0, 0, 0, 0) >= 0;
  return abilities;
}

uint32_t MemfdFlags() {
  constexpr uint32_t kNoExecSeal = 8;  // MFD_NOEXEC_SEAL
  const bool is_known = MakeMemfd(MFD_CLOEXEC | kNoExecSeal).valid() || errno != EINVAL;
  return is_known ? MFD_CLOEXEC | kNoExecSeal : MFD_CLOEXEC;
}

}  // namespace stackreel::os
