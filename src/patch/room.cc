#include "patch/room.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace stackreel::patch {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }
uint64_t RoundDown(uint64_t value, uint64_t to) { return value / to * to; }

// What can hold the start of the room so that it and the module reach each other.
struct Window {
  uint64_t first;
  uint64_t last;
};
std::optional<Window> WindowFor(AddressRange module, uint64_t size) {
  const uint64_t lowest = kUserSpace.start.value;
  const uint64_t highest = kUserSpace.end.value;
  if (module.end <= module.start || size == 0 || size > kReach || module.size() > kReach ||
      module.end.value > highest) {
    return std::nullopt;
  }
  // From the room's first byte to the module's end, and from the module's first to the room's end.
  const uint64_t first =
      module.end.value > kReach + lowest ? RoundUp(module.end.value - kReach, kPage) : lowest;
  const uint64_t end = std::min(module.start.value + kReach, highest);
  if (end < size || RoundDown(end - size, kPage) < first) return std::nullopt;
  return Window{first, RoundDown(end - size, kPage)};
}

}  // namespace

bool Reaches(AddressRange room, AddressRange module) {
  const uint64_t start = std::min(room.start.value, module.start.value);
  const uint64_t end = std::max(room.end.value, module.end.value);
  return end - start <= kReach;
}

std::optional<AddressRange> FindRoom(std::span<const AddressRange> mapped, AddressRange module,
                                     uint64_t size, uint64_t gap) {
  const auto window = WindowFor(module, size);
  if (!window) return std::nullopt;
  std::optional<uint64_t> below;
  std::optional<uint64_t> above;
  // The free range between two mappings (or the ends of user space), without the gaps.
  const auto consider = [&](uint64_t from, uint64_t to, bool after_mapping, bool before_mapping) {
    if (after_mapping) from += gap;
    if (before_mapping) to = to > gap ? to - gap : 0;
    const uint64_t first = std::max(RoundUp(from, kPage), window->first);
    if (to < size) return;
    const uint64_t last = std::min(RoundDown(to - size, kPage), window->last);
    if (first > last) return;
    if (first < module.start.value) below = last;  // the last such is the nearest
    if (first >= module.start.value && !above) above = first;
  };
  uint64_t end = kUserSpace.start.value;
  bool first = true;
  for (const AddressRange& mapping : mapped) {
    if (mapping.start.value > end) consider(end, mapping.start.value, !first, true);
    end = std::max(end, mapping.end.value);
    first = false;
  }
  if (end < kUserSpace.end.value) consider(end, kUserSpace.end.value, !first, false);
  const auto start = below ? below : above;
  if (!start) return std::nullopt;
  return AddressRange{Avma(*start), Avma(*start + size)};
}

void SlotRooms::AddRoom(AddressRange room) { Free(room); }

std::optional<AddressRange> SlotRooms::Take(uint64_t size, AddressRange module) {
  const uint64_t bytes = RoundUp(std::max<uint64_t>(size, 1), kAlignment);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [start, end] = *it;
    if (end - start < bytes) continue;
    const AddressRange slot = {start, start + bytes};
    if (!Reaches(slot, module)) continue;
    free_.erase(it);
    if (slot.end < end) free_.emplace(slot.end, end);
    taken_.emplace(slot.start, slot.end);
    return slot;
  }
  return std::nullopt;
}

void SlotRooms::Retire(AddressRange slot) {
  const auto taken = taken_.find(slot.start);
  CHECK(taken != taken_.end() && taken->second == slot.end);
  taken_.erase(taken);
  retired_.push_back({slot});
}

void SlotRooms::BeginCensus() {
  for (Retired& retired : retired_) retired.counted = true;
}

size_t SlotRooms::Reclaim(const ThreadCensus& census) {
  if (!census.complete) return 0;
  std::vector<Avma> met = census.met;
  std::ranges::sort(met);
  return std::erase_if(retired_, [&](const Retired& retired) {
    if (!retired.counted) return false;
    // Its end too: a return address or a context can be behind its last instruction.
    const auto first = std::ranges::lower_bound(met, retired.slot.start);
    if (first != met.end() && *first <= retired.slot.end) return false;
    Free(retired.slot);
    return true;
  });
}

uint64_t SlotRooms::free_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [start, end] : free_) bytes += end - start;
  return bytes;
}

void SlotRooms::Free(AddressRange range) {
  auto [at, added] = free_.emplace(range.start, range.end);
  CHECK(added);
  const auto next = std::next(at);
  if (next != free_.end() && next->first == at->second) {
    at->second = next->second;
    free_.erase(next);
  }
  if (at != free_.begin()) {
    const auto before = std::prev(at);
    if (before->second == at->first) {
      before->second = at->second;
      free_.erase(at);
    }
  }
}

}  // namespace stackreel::patch
