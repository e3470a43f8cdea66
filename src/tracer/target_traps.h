// Sites of a target that are, or become for a moment, an int3: the agent's handler of SIGTRAP, and
// the table that it reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "patch/execute.h"
#include "patch/trap.h"
#include "tracer/installed_agent.h"
#include "tracer/target.h"

namespace stackreel::tracer {

// Why no trap may be met in the target, as far as can be seen from outside: an int3 ends a process
// whose thread blocks SIGTRAP at that moment (signal(7), and force_sig_info_to_task in the kernel).
// So a thread must not block it, nor a handler of a signal for as long as it runs. Nothing if none
// does; signals that have handlers are added to `looked_at`. Holds the target.
Result<std::optional<std::string>> WhyNoTraps(Target& target, const AgentPlace& agent,
                                              uint64_t* looked_at = nullptr);

// AgentControl::trap_table. The handler is put in with the first table that has entries, and what
// the program wants done about SIGTRAP is kept for it (AgentControl::program_trap_…): it goes on
// getting what is not ours.
class TargetTraps : public patch::TrapTable {
 public:
  TargetTraps(Target& target, const AgentPlace& agent) : target_(target), agent_(agent) {}
  Status Publish(std::span<const patch::TrapEntry> entries) override;
  // Whether that should be asked again: a thread blocks the signal, or handlers have come or gone
  // since. That shows of a process that runs, so that nobody's time-out begins anew for it.
  [[nodiscard]] bool HasReasonForDoubt() const;
  // Whether the handler that was put in still is the process's, and no thread blocks its signal;
  // else why it must not be relied on. Holds the target.
  Result<std::optional<std::string>> WhyNotReliable();

 private:
  Result<Avma> PlaceFor(uint64_t size);
  [[nodiscard]] Result<bool> SomebodyMayRead();

  Target& target_;
  AgentPlace agent_;
  bool has_handler_ = false;
  uint64_t looked_at_ = 0;  // signals whose handlers were found to block nothing
  std::vector<patch::TrapEntry> last_;
  // Tables stand in here one behind the other; it begins anew when nobody can be reading any.
  Avma memory_;
  uint64_t size_ = 0, used_ = 0;
  patch::AddressRange current_;  // the table that is published
};

// Gives SIGTRAP back to the program, if the agent's handler has it. The target is held, no site is
// a trap, and no thread is on its way to the handler.
Status RestoreTrapHandler(Target& target, const AgentPlace& agent);

}  // namespace stackreel::tracer
