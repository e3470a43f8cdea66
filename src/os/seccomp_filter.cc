#include "os/seccomp_filter.h"

#include <errno.h>
#include <sys/ptrace.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "os/file.h"

namespace stackreel::os {

namespace {

constexpr long kGetFilter = 0x420c;  // PTRACE_SECCOMP_GET_FILTER

// Registers and memory of a filter at work.
struct FilterMachine {
  const seccomp_data& call;
  uint32_t a = 0, x = 0;
  std::array<uint32_t, BPF_MEMWORDS> memory = {};
  bool bad = false;

  uint32_t Load(uint32_t offset) {
    uint32_t word = 0;
    if (offset % sizeof(word) != 0 || offset > sizeof(call) - sizeof(word)) {
      bad = true;
      return 0;
    }
    std::memcpy(&word, reinterpret_cast<const uint8_t*>(&call) + offset, sizeof(word));
    return word;
  }
  uint32_t& Word(uint32_t i) {
    bad = bad || i >= memory.size();
    return memory[i % memory.size()];
  }
  void LoadInto(uint32_t& into, const sock_filter& step) {
    switch (BPF_MODE(step.code)) {
      case BPF_IMM:
        into = step.k;
        return;
      case BPF_ABS:
        into = Load(step.k);
        return;
      case BPF_MEM:
        into = Word(step.k);
        return;
      case BPF_LEN:
        into = sizeof(call);
        return;
      default:
        bad = true;
    }
  }
  void Compute(const sock_filter& step) {
    const uint32_t b = BPF_SRC(step.code) == BPF_X ? x : step.k;
    constexpr uint32_t kBits = 32;
    switch (BPF_OP(step.code)) {
      case BPF_ADD:
        a += b;
        return;
      case BPF_SUB:
        a -= b;
        return;
      case BPF_MUL:
        a *= b;
        return;
      case BPF_DIV:
        bad = bad || b == 0;
        a = b == 0 ? 0 : a / b;
        return;
      case BPF_OR:
        a |= b;
        return;
      case BPF_AND:
        a &= b;
        return;
      case BPF_LSH:
        a = b < kBits ? a << b : 0;
        return;
      case BPF_RSH:
        a = b < kBits ? a >> b : 0;
        return;
      case BPF_XOR:
        a ^= b;
        return;
      case BPF_NEG:
        a = -a;
        return;
      default:
        bad = true;
    }
  }
  // How many steps are passed over.
  uint32_t Jump(const sock_filter& step) {
    const uint32_t b = BPF_SRC(step.code) == BPF_X ? x : step.k;
    switch (BPF_OP(step.code)) {
      case BPF_JA:
        return step.k;
      case BPF_JEQ:
        return a == b ? step.jt : step.jf;
      case BPF_JGT:
        return a > b ? step.jt : step.jf;
      case BPF_JGE:
        return a >= b ? step.jt : step.jf;
      case BPF_JSET:
        return (a & b) != 0 ? step.jt : step.jf;
      default:
        bad = true;
        return 0;
    }
  }
};

}  // namespace

uint32_t RunSeccompFilter(std::span<const sock_filter> filter, const seccomp_data& call) {
  FilterMachine machine{.call = call};
  for (size_t at = 0; at < filter.size() && !machine.bad; ++at) {
    const sock_filter& step = filter[at];
    switch (BPF_CLASS(step.code)) {
      case BPF_LD:
        machine.LoadInto(machine.a, step);
        break;
      case BPF_LDX:
        machine.LoadInto(machine.x, step);
        break;
      case BPF_ST:
        machine.Word(step.k) = machine.a;
        break;
      case BPF_STX:
        machine.Word(step.k) = machine.x;
        break;
      case BPF_ALU:
        machine.Compute(step);
        break;
      case BPF_JMP:
        at += machine.Jump(step);
        break;
      case BPF_RET:
        return (BPF_RVAL(step.code) == BPF_A ? machine.a : step.k) & SECCOMP_RET_ACTION_FULL;
      case BPF_MISC:
        if (BPF_MISCOP(step.code) == BPF_TAX) {
          machine.x = machine.a;
        } else {
          machine.a = machine.x;
        }
        break;
    }
  }
  return SECCOMP_RET_KILL_PROCESS;
}

uint32_t StrictestAction(std::span<const SeccompFilter> filters, const seccomp_data& call) {
  uint32_t strictest = SECCOMP_RET_ALLOW;
  // As signed numbers, the action to be taken is the lowest.
  for (const SeccompFilter& filter : filters) {
    const uint32_t action = RunSeccompFilter(filter, call);
    if (static_cast<int32_t>(action) < static_cast<int32_t>(strictest)) strictest = action;
  }
  return strictest;
}

bool IsHarmful(uint32_t action) {
  return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
         action == SECCOMP_RET_TRAP;
}

Result<std::vector<SeccompFilter>> ReadSeccompFilters(uint32_t tid) {
  const auto thread = static_cast<pid_t>(tid);
  const auto get = [thread](long i, sock_filter* into) {
    return ptrace(static_cast<__ptrace_request>(kGetFilter), thread, i, into);
  };
  std::vector<SeccompFilter> filters;
  constexpr long kMostFilters = 1024;
  for (long i = 0; i < kMostFilters; ++i) {
    const long length = get(i, nullptr);
    if (length < 0 && errno == ENOENT) break;
    if (length >= 0) filters.emplace_back(static_cast<size_t>(length));
    if (length >= 0 && get(i, filters.back().data()) >= 0) continue;
    const int error = errno;
    Error refused = ErrnoError(error, "the seccomp filter cannot be read");
    const bool may_not = error == EACCES || error == EPERM;
    refused.kind = may_not ? ErrorKind::kPermission : ErrorKind::kUnsupported;
    return Fail(std::move(refused));
  }
  return filters;
}

}  // namespace stackreel::os
