#include "tracer/target_traps.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "os/proc.h"
#include "os/traced_thread.h"
#include "tracedata/agent_memory.h"
#include "tracer/target_process.h"

namespace stackreel::tracer {

namespace {

using tracedata::AgentControl;

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHasRestorer = 0x04000000;  // SA_RESTORER of the kernel's asm/signal.h
constexpr int kLastSignal = 64;

constexpr uint64_t BitOf(int signal) { return uint64_t{1} << (signal - 1); }

// The kernel's struct sigaction on x86-64.
struct KernelAction {
  uint64_t handler = 0;
  uint64_t flags = 0;
  uint64_t restorer = 0;
  uint64_t mask = 0;
};
static_assert(sizeof(KernelAction) <= tracedata::kScratchSize);

Result<KernelAction> ReadAction(Target& target, const AgentPlace& agent, int signal) {
  const Avma scratch = agent.control() + tracedata::kScratchOffset;
  TRY(target.SystemCall(
      "rt_sigaction", SYS_rt_sigaction,
      {static_cast<uint64_t>(signal), 0, scratch.value, sizeof(KernelAction::mask)}));
  return target.ReadObject<KernelAction>(scratch);
}

Status SetTrapAction(Target& target, const AgentPlace& agent, const KernelAction& action) {
  const Avma scratch = agent.control() + tracedata::kScratchOffset;
  TRY(target.WriteObject(scratch, action));
  TRY(target.SystemCall("rt_sigaction", SYS_rt_sigaction,
                        {SIGTRAP, scratch.value, 0, sizeof(KernelAction::mask)}));
  return {};
}

Result<tracedata::AgentCodeHeader> ReadRoutines(const Target& target, const AgentPlace& agent) {
  return target.ReadObject<tracedata::AgentCodeHeader>(agent.code);
}

// What the program wants goes where the handler finds it, before that can be called.
Status PutHandlerIn(Target& target, const AgentPlace& agent) {
  TRY_ASSIGN(const Holding held, Holding::Of(target));
  TRY_ASSIGN(const auto routines, ReadRoutines(target, agent));
  TRY_ASSIGN(const KernelAction theirs, ReadAction(target, agent, SIGTRAP));
  const uint64_t ours = agent.code.value + routines.trap;
  if (theirs.handler == ours) return {};
  const Avma control = agent.control();
  TRY(target.WriteObject(control + offsetof(AgentControl, program_trap_handler), theirs.handler));
  TRY(target.WriteObject(control + offsetof(AgentControl, program_trap_flags), theirs.flags));
  TRY(target.WriteObject(control + offsetof(AgentControl, program_trap_mask), theirs.mask));
  TRY(target.WriteObject(control + offsetof(AgentControl, program_trap_restorer), theirs.restorer));
  // A trap may be met in the handler of another, which the program's may be. A signal that was
  // ignored made no system call return.
  const bool ignored = theirs.handler == reinterpret_cast<uint64_t>(SIG_IGN);
  const uint64_t restart = ignored ? uint64_t{SA_RESTART} : theirs.flags & SA_RESTART;
  return SetTrapAction(target, agent,
                       {.handler = ours,
                        .flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK | kHasRestorer | restart,
                        .restorer = agent.code.value + routines.trap_return,
                        .mask = 0});
}

}  // namespace

Result<std::optional<std::string>> WhyNoTraps(Target& target, const AgentPlace& agent,
                                              uint64_t* looked_at) {
  TRY_ASSIGN(const Holding held, Holding::Of(target));
  uint64_t caught = 0;
  for (const os::StoppedProcess::Thread& thread : target.threads().threads()) {
    const auto signals = os::ReadSignalSets(thread.pid, thread.tid);
    if (!signals) continue;  // it was killed
    if ((signals->blocked & BitOf(SIGTRAP)) != 0) {
      return fmt::format("a thread blocks the signal of traps ({})", thread.tid);
    }
    caught |= signals->caught;
  }
  for (int signal = 1; signal <= kLastSignal; ++signal) {
    if (signal == SIGTRAP || (caught & BitOf(signal)) == 0) continue;
    TRY_ASSIGN(const KernelAction action, ReadAction(target, agent, signal));
    if ((action.mask & BitOf(SIGTRAP)) != 0) {
      return fmt::format("the handler of signal {} blocks the signal of traps", signal);
    }
  }
  if (looked_at != nullptr) *looked_at |= caught;
  return std::nullopt;
}

bool TargetTraps::HasReasonForDoubt() const {
  if (!has_handler_) return false;
  for (const uint32_t tid : os::ListThreads(target_.pid())) {
    const auto signals = os::ReadSignalSets(target_.pid(), tid);
    if (!signals) continue;  // it has ended
    if ((signals->blocked & BitOf(SIGTRAP)) != 0) return true;
    if ((signals->caught & BitOf(SIGTRAP)) == 0) return true;
    if ((signals->caught & ~looked_at_) != 0) return true;
  }
  return false;
}

Result<std::optional<std::string>> TargetTraps::WhyNotReliable() {
  if (!has_handler_) return std::nullopt;
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  TRY_ASSIGN(const auto routines, ReadRoutines(target_, agent_));
  TRY_ASSIGN(const KernelAction action, ReadAction(target_, agent_, SIGTRAP));
  if (action.handler != agent_.code.value + routines.trap) {
    has_handler_ = false;  // the next table puts it in again, and in front of the program's
    last_.clear();
    return "the program has taken over the signal of traps";
  }
  return WhyNoTraps(target_, agent_, &looked_at_);
}

Status TargetTraps::Publish(std::span<const patch::TrapEntry> entries) {
  if (std::ranges::equal(entries, last_)) return {};
  std::vector<uint8_t> bytes(sizeof(tracedata::TrapTable) + entries.size_bytes());
  const tracedata::TrapTable head{.entries = entries.size()};
  std::memcpy(bytes.data(), &head, sizeof(head));
  static_assert(sizeof(patch::TrapEntry) == 3 * sizeof(uint64_t));
  if (!entries.empty()) {
    std::memcpy(bytes.data() + sizeof(head), entries.data(), entries.size_bytes());
  }
  TRY_ASSIGN(const Avma at, PlaceFor(bytes.size()));
  TRY(target_.Write(at, bytes));
  // When nothing is left that can fail: by the table RestoreTrapHandler knows that it was put in.
  if (!has_handler_) TRY(PutHandlerIn(target_, agent_));
  has_handler_ = true;
  TRY(target_.WriteObject(agent_.control() + offsetof(AgentControl, trap_table), at.value));
  current_ = {at, at + bytes.size()};
  last_.assign(entries.begin(), entries.end());
  return {};
}

// A thread that is in the agent may have begun to look into an older table.
Result<bool> TargetTraps::SomebodyMayRead() {
  if (!target_.held()) return true;
  TRY_ASSIGN(const std::vector<ThreadPosition> positions, FindPositions(target_));
  const patch::AddressRange code{agent_.code, agent_.code + tracedata::kAgentCodeSize};
  return std::ranges::any_of(
      positions, [&](const ThreadPosition& thread) { return code.Contains(thread.position.ip); });
}

Result<Avma> TargetTraps::PlaceFor(uint64_t size) {
  if (used_ + size > size_) {
    TRY_ASSIGN(const bool may_read, SomebodyMayRead());
    if (!may_read && size_ != 0) {
      // The one that is published stays whole.
      const uint64_t begin = current_.start - memory_;
      used_ = begin >= size ? 0 : begin + current_.size();
    }
  }
  if (used_ + size > size_) {
    // What is full stays mapped: somebody may be reading there.
    constexpr uint64_t kTables = 16;
    const uint64_t wanted =
        std::max<uint64_t>(kTables * size, 16 * kPageBytes) / kPageBytes * kPageBytes;
    TRY_ASSIGN(const Holding held, Holding::Of(target_));
    TRY_ASSIGN(const uint64_t at,
               target_.SystemCall("mmap", SYS_mmap,
                                  {0, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                   ~uint64_t{0}, 0}));
    memory_ = Avma(at);
    size_ = wanted;
    used_ = 0;
  }
  const Avma at = memory_ + used_;
  used_ += (size + 15) / 16 * 16;
  return at;
}

Status RestoreTrapHandler(Target& target, const AgentPlace& agent) {
  const Avma control = agent.control();
  const Avma table = control + offsetof(AgentControl, trap_table);
  TRY_ASSIGN(const auto published, target.ReadObject<uint64_t>(table));
  if (published == 0) return {};
  TRY_ASSIGN(const auto routines, ReadRoutines(target, agent));
  TRY_ASSIGN(const KernelAction action, ReadAction(target, agent, SIGTRAP));
  // The program may have set one of its own since.
  if (action.handler == agent.code.value + routines.trap) {
    const auto read = [&](size_t offset) { return target.ReadObject<uint64_t>(control + offset); };
    KernelAction theirs;
    TRY_ASSIGN(theirs.handler, read(offsetof(AgentControl, program_trap_handler)));
    TRY_ASSIGN(theirs.flags, read(offsetof(AgentControl, program_trap_flags)));
    TRY_ASSIGN(theirs.mask, read(offsetof(AgentControl, program_trap_mask)));
    TRY_ASSIGN(theirs.restorer, read(offsetof(AgentControl, program_trap_restorer)));
    TRY(SetTrapAction(target, agent, theirs));
  }
  return target.WriteObject<uint64_t>(table, 0);
}

}  // namespace stackreel::tracer
