#include "agent/agent_memory_reader.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "patch/journal.h"

namespace stackreel::agent {

using tracedata::AgentControl;

std::optional<FoundAgent> FindAgent(const std::vector<os::ProcMapping>& maps,
                                    const ReadMemory& read) {
  const std::string name = fmt::format("/memfd:{}", kPoolName);
  for (const os::ProcMapping& mapping : maps) {
    if (!mapping.path.starts_with(name) || (mapping.flags & MAP_SHARED) == 0) continue;
    if (mapping.start < tracedata::kAgentSize) continue;
    FoundAgent found;
    found.place.code = Avma(mapping.start - tracedata::kAgentSize);
    found.place.pool_size = mapping.end - mapping.start;
    found.pool_inode = mapping.ino;
    std::array<uint8_t, sizeof(AgentControl)> bytes = {};
    if (!read(found.place.control(), bytes)) continue;
    const auto* control = reinterpret_cast<const AgentControl*>(bytes.data());
    if (control->magic != tracedata::kAgentMagic) continue;
    found.version = control->version;
    found.tracer_pid = control->tracer_pid;
    return found;
  }
  return std::nullopt;
}

Result<std::vector<patch::Site>> ReadJournal(const AgentPlace& agent, const ReadMemory& read) {
  struct {
    uint64_t at = 0, size = 0;
  } where;
  static_assert(offsetof(AgentControl, journal_size) ==
                offsetof(AgentControl, journal) + sizeof(uint64_t));
  TRY(read(agent.control() + offsetof(AgentControl, journal),
           {reinterpret_cast<uint8_t*>(&where), sizeof(where)}));
  if (where.size == 0) return std::vector<patch::Site>();
  // The process may have written here: nothing is allocated by what it says.
  constexpr uint64_t kMost = uint64_t{1} << 30;
  if (where.size > kMost) {
    return Fail(ErrorKind::kDamaged, "the journal of its sites was overwritten");
  }
  std::vector<uint8_t> bytes;
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  for (uint64_t done = 0; done < where.size;) {
    const uint64_t piece = std::min(kPiece, where.size - done);
    bytes.resize(done + piece);
    TRY(read(Avma(where.at + done), std::span(bytes).subspan(done)));
    done += piece;
  }
  return patch::DecodeSites(bytes);
}

}  // namespace stackreel::agent
