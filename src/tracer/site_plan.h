// From the functions that were named to patch sites of one process, stubs and all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/stub.h"
#include "base/address.h"
#include "base/bytes.h"
#include "base/error.h"
#include "patch/room.h"
#include "patch/site.h"
#include "tracer/module_code.h"

namespace stackreel::tracer {

// A module as it stands in the process.
struct PlacedModule {
  const ModuleCode* code = nullptr;
  patch::AddressRange range;  // of all its segments
  uint64_t bias = 0;          // avma - svma
};

// A function to be patched. `function` is its id in the trace.
struct SiteWish {
  const ModuleFunction* target = nullptr;
  uint32_t function = 0;
  agent::StubKind stub = agent::StubKind::kCall;
};

struct PlannedSite {
  patch::Site site;
  patch::AddressRange slot;  // of the stub, in a room
  agent::StubKind stub_kind = agent::StubKind::kCall;
  std::vector<uint8_t> stub_bytes;  // to be written at slot.start before anything is published
};

// Why a function is not patched: ours, x86's or patch's reason, in words that `status` counts.
struct RefusedFunction {
  uint32_t function = 0;
  std::string reason;
};

struct SitePlan {
  std::vector<PlannedSite> sites;
  std::vector<RefusedFunction> refused;
};

struct PlanOptions {
  bool has_shadow_stack = false;
  bool has_branch_tracking = false;
  bool allow_trap = true;
  // Where not: of a function that a trap could be put at, why none is.
  std::string_view why_no_trap;
};

// Rooms of the process: where stubs can stand. A room begins with agent::kRoomHeaderSize bytes that
// are no slot.
class Rooms {
 public:
  virtual ~Rooms() = default;
  // `size` bytes within reach of all of `module`, in a room that is mapped then; kNotFound if
  // there is no place. `room` is the room's start.
  struct Slot {
    patch::AddressRange range;
    Avma room;
  };
  virtual Result<Slot> Take(uint64_t size, patch::AddressRange module) = 0;
  virtual void GiveBack(patch::AddressRange slot) = 0;
};

// Plans sites for the functions named. Reads nothing of the process: that its memory holds what the
// file has is checked when the batch is executed (patch::MemoryForm). Sites of functions that are
// the same code are made once. Functions whose own loop goes back to their first byte are refused,
// but for those with a nop there: the stub could not tell a round from a call.
[[nodiscard]] SitePlan PlanSites(const PlacedModule& module, std::span<const SiteWish> wishes,
                                 const PlanOptions& options, Rooms& rooms);

}  // namespace stackreel::tracer
