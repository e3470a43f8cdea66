// The handler of SIGTRAP: for int3 that patching has stored. Everything else is the program's.
#include "patch/trap.h"

#include "agent/inside/agent.h"
#include "agent/inside/system_call.h"

namespace stackreel::agent {
namespace {

constexpr int32_t kSignal = 5;                // SIGTRAP
constexpr int32_t kRaisedByInt3 = 0x80;       // SI_KERNEL
constexpr uint64_t kDefault = 0;              // SIG_DFL
constexpr uint64_t kIgnore = 1;               // SIG_IGN
constexpr uint64_t kResetHandler = 1u << 31;  // SA_RESETHAND
constexpr uint64_t kRestorer = 0x04000000;    // SA_RESTORER
// Offsets in a ucontext_t.
constexpr size_t kContextRsp = 40 + 8 * 15;
constexpr size_t kContextRip = 40 + 8 * 16;

struct SignalInfo {
  int32_t number;
  int32_t error;
  int32_t code;
};
struct KernelAction {
  uint64_t handler = kDefault;
  uint64_t flags = kRestorer;
  uint64_t restorer = 0;
  uint64_t mask = 0;
};

// The published table, as HandleTrap wants it.
struct Published {
  const tracedata::TrapTable* table = nullptr;
  [[nodiscard]] const patch::TrapEntry* data() const {
    return reinterpret_cast<const patch::TrapEntry*>(table + 1);
  }
  [[nodiscard]] size_t size() const { return table == nullptr ? 0 : table->entries; }
  friend bool operator==(const Published&, const Published&) = default;
};

extern "C" __attribute__((visibility("hidden"))) void agent_trap_return();

// Ends the process as an int3 without a handler does, when this handler returns.
void Die() {
  KernelAction action;
  action.restorer = reinterpret_cast<uint64_t>(&agent_trap_return);
  SystemCall(__NR_rt_sigaction, kSignal, AddressOf(&action), 0, kSignalSetSize);
  SystemCall(__NR_tgkill, Getpid(), Gettid(), kSignal);
  const uint64_t trap = uint64_t{1} << (kSignal - 1);
  SystemCall(__NR_rt_sigprocmask, kUnblockSignals, AddressOf(&trap), 0, kSignalSetSize);
}

void CallProgram(int32_t number, SignalInfo* info, void* context) {
  const uint64_t handler = agent_control.program_trap_handler;
  // The kernel does not let an int3 be ignored.
  if (handler == kIgnore && info->code != kRaisedByInt3) return;
  if (handler == kIgnore || handler == kDefault) {
    Die();
    return;
  }
  if ((agent_control.program_trap_flags & kResetHandler) != 0) {
    agent_control.program_trap_handler = kDefault;
  }
  // Returning from our handler sets the mask back. SIGTRAP itself stays open, or the next of our
  // traps would be fatal.
  const uint64_t mask = agent_control.program_trap_mask & ~(uint64_t{1} << (kSignal - 1));
  SystemCall(__NR_rt_sigprocmask, kBlockSignals, AddressOf(&mask), 0, kSignalSetSize);
  reinterpret_cast<void (*)(int32_t, SignalInfo*, void*)>(handler)(number, info, context);
}

}  // namespace

extern "C" void agent_trap(int32_t number, SignalInfo* info, void* context) {
  auto* const bytes = static_cast<uint8_t*>(context);
  auto& rip = *reinterpret_cast<uint64_t*>(bytes + kContextRip);
  auto& rsp = *reinterpret_cast<uint64_t*>(bytes + kContextRsp);
  if (info->code != kRaisedByInt3) {
    CallProgram(number, info, context);
    return;
  }
  const auto decision = patch::HandleTrap(
      [] {
        return Published{reinterpret_cast<const tracedata::TrapTable*>(
            agent_control.trap_table.load(std::memory_order_acquire))};
      },
      [](Avma at) { return *reinterpret_cast<const volatile uint8_t*>(at.value); }, Avma(rip));
  if (decision.action == patch::TrapAction::kProgram) {
    CallProgram(number, info, context);
    return;
  }
  if (decision.return_address != Avma(0)) {
    rsp -= sizeof(uint64_t);
    WordAt(rsp) = decision.return_address.value;
  }
  rip = decision.to.value;
}

}  // namespace stackreel::agent
