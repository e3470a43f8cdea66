#include "tracer/target_rooms.h"

#include <fmt/format.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "os/proc.h"

namespace stackreel::tracer {

namespace {
constexpr uint64_t kPage = 4096;
constexpr uint64_t kLeastRoom = 64 << 10;
constexpr uint64_t kMostRoom = uint64_t{64} << 20;
constexpr int kTries = 8;
}  // namespace

bool TargetRooms::Contains(Avma at) const {
  return std::ranges::any_of(rooms_, [at](const auto& room) { return room.Contains(at); });
}

Result<Rooms::Slot> TargetRooms::Take(uint64_t size, patch::AddressRange module) {
  auto slot = slots_.Take(size, module);
  // The stub reaches the room's header, too.
  if (!slot) {
    TRY(AddRoom(size, module));
    slot = slots_.Take(size, module);
  }
  if (!slot) return Fail(ErrorKind::kUnsupported, "no room within reach");
  const auto room =
      std::ranges::find_if(rooms_, [&](const auto& range) { return range.Contains(slot->start); });
  return Slot{*slot, room->start};
}

Status TargetRooms::Reserve(uint64_t bytes, patch::AddressRange module) {
  expected_ = std::min(bytes, kMostRoom / 2);
  TRY_ASSIGN(const Slot slot, Take(expected_, module));
  GiveBack(slot.range);
  return {};
}

void TargetRooms::GiveBack(patch::AddressRange slot) {
  slots_.Retire(slot);
  // Nothing has ever led there.
  slots_.BeginCensus();
  (void)slots_.Reclaim({.met = {}, .complete = true});
}

Status TargetRooms::SetEntering(agent::Entering entering) {
  if (entering == entering_) return {};
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  for (const patch::AddressRange& room : rooms_) {
    TRY(target_.Write(room.start, agent::MakeRoomHeader(agent_, entering)));
  }
  entering_ = entering;
  return {};
}

Status TargetRooms::AddRoom(uint64_t size, patch::AddressRange module) {
  const uint64_t wanted =
      std::clamp(std::max(expected_, size) + agent::kRoomHeaderSize + kPage, kLeastRoom, kMostRoom);
  uint64_t bytes = (wanted + kPage - 1) / kPage * kPage;
  TRY_ASSIGN(const Holding held, Holding::Of(target_));
  for (int i = 0; i < kTries; ++i) {
    TRY_ASSIGN(const std::vector<os::ProcMapping> maps, os::ReadProcMaps(target_.pid()));
    const auto place = patch::FindRoom(RangesOf(maps), module, bytes);
    if (!place) {
      // A smaller one may fit.
      if (bytes / 2 < size + kPage) break;
      bytes = (bytes / 2 + kPage - 1) / kPage * kPage;
      continue;
    }
    TRY_ASSIGN(
        const uint64_t at,
        target_.SystemCall("mmap", SYS_mmap,
                           {place->start.value, bytes, PROT_READ | PROT_EXEC,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, ~uint64_t{0}, 0}));
    if (at != place->start.value) {
      // A kernel before 4.17 takes the address for a wish.
      TRY(target_.SystemCall("munmap", SYS_munmap, {at, bytes}));
      break;
    }
    TRY(target_.Write(place->start, agent::MakeRoomHeader(agent_, entering_)));
    rooms_.push_back(*place);
    slots_.AddRoom({place->start + agent::kRoomHeaderSize, place->end});
    return {};
  }
  return Fail(ErrorKind::kUnsupported,
              fmt::format("there is no free place within 2 GB of {:#x}", module.start.value));
}

}  // namespace stackreel::tracer
