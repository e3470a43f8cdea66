// Rooms in a target, where stubs stand.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/stub.h"
#include "base/address.h"
#include "patch/room.h"
#include "tracer/site_plan.h"
#include "tracer/target.h"

namespace stackreel::tracer {

class TargetRooms : public Rooms {
 public:
  TargetRooms(Target& target, Avma agent_code) : target_(target), agent_(agent_code) {}

  // Holds the target for a moment if a room must be mapped.
  Result<Slot> Take(uint64_t size, patch::AddressRange module) override;
  void GiveBack(patch::AddressRange slot) override;
  // What the stubs of all rooms call. Holds the target for a moment.
  Status SetEntering(agent::Entering entering);
  // Maps a room now if there is none with so many bytes free that `module` reaches: so that it is
  // done while the target is held anyway.
  Status Reserve(uint64_t bytes, patch::AddressRange module);

  [[nodiscard]] const std::vector<patch::AddressRange>& rooms() const { return rooms_; }
  [[nodiscard]] bool Contains(Avma at) const;

 private:
  Status AddRoom(uint64_t size, patch::AddressRange module);

  Target& target_;
  Avma agent_;
  patch::SlotRooms slots_;
  std::vector<patch::AddressRange> rooms_;
  uint64_t expected_ = 0;  // how large the next room is to be at least
  agent::Entering entering_ = agent::Entering::kPlain;
};

}  // namespace stackreel::tracer
