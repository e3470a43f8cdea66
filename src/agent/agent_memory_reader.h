// An agent in another process, as it is found and read from outside.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"
#include "base/error.h"
#include "os/proc.h"
#include "patch/site.h"
#include "tracedata/agent_memory.h"

namespace stackreel::agent {

// The name under which the pool is found in /proc/PID/maps. The agent lies directly below it.
inline constexpr char kPoolName[] = "stackreel";

// Where an agent's parts are in its process.
struct AgentPlace {
  Avma code;
  uint64_t pool_size = 0;
  [[nodiscard]] Avma control() const { return code + tracedata::kAgentCodeSize; }
  [[nodiscard]] Avma directory() const { return control() + tracedata::kControlSize; }
  [[nodiscard]] Avma slots() const { return directory() + tracedata::kDirectorySize; }
  [[nodiscard]] Avma slot(uint32_t i) const {
    return slots() + uint64_t{i} * sizeof(tracedata::ThreadSlot);
  }
  [[nodiscard]] Avma pool() const { return code + tracedata::kAgentSize; }
};

struct FoundAgent {
  AgentPlace place;
  uint64_t pool_inode = 0;
  uint32_t version = 0;
  uint32_t tracer_pid = 0;  // 0: detached
};

// Reads all of `out` of a process's memory.
using ReadMemory = std::function<Status(Avma at, std::span<uint8_t> out)>;

// By the mappings of a process; nothing if it has no agent.
std::optional<FoundAgent> FindAgent(const std::vector<os::ProcMapping>& maps,
                                    const ReadMemory& read);

// The sites that are patched there, or may be, as the agent's journal has them. kUnsupported,
// kDamaged: it is of another version, or the process has written over it.
Result<std::vector<patch::Site>> ReadJournal(const AgentPlace& agent, const ReadMemory& read);

}  // namespace stackreel::agent
