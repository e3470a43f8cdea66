// Room for out-of-line code: where it can be mapped, who has which part of it, and when a part may
// be used anew. Pure: the mappings, and where the threads are, are handed in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/address.h"

namespace stackreel::patch {

// [start, end).
struct AddressRange {
  Avma start;
  Avma end;
  [[nodiscard]] uint64_t size() const { return end - start; }
  [[nodiscard]] bool Contains(Avma at) const { return at >= start && at < end; }
  friend bool operator==(const AddressRange&, const AddressRange&) = default;
};

// What of user space may be mapped: from vm.mmap_min_addr to the last page but one of 47 bits.
inline constexpr AddressRange kUserSpace = {Avma(0x10000), Avma(0x7fff'ffff'e000)};
// A 32-bit displacement reaches this far from the end of its branch.
inline constexpr uint64_t kReach = uint64_t{1} << 31;

// Where `size` bytes (a multiple of the page's 4096) are free, so near that code there and all of
// `module` reach each other by 32-bit displacements; nothing if there is no such place. `mapped`
// are the process's mappings, ascending. The place is as near as can be, but `gap` bytes away from
// what is mapped below it, which may want to grow (the heap), or above it (a stack); below the
// module if there is a choice.
[[nodiscard]] std::optional<AddressRange> FindRoom(std::span<const AddressRange> mapped,
                                                   AddressRange module, uint64_t size,
                                                   uint64_t gap = 1 << 20);

// Whether code in `room` and in `module` reach each other.
[[nodiscard]] bool Reaches(AddressRange room, AddressRange module);

// Where threads have been seen: the places in rooms that their registers, the contexts in their
// signal frames, and any word on their stacks point to (a word may be no address at all; that only
// keeps a slot longer).
struct ThreadCensus {
  std::vector<Avma> met;
  // Every thread was looked at, after the slots in question had been retired, and none of them was
  // on its way through the trap handler (whose table may still lead anywhere).
  bool complete = false;
};

// Slots of code in rooms. Slots are retired, not freed: a retired slot is used anew only when a
// census, begun after it was retired, has found nobody who can still meet it. Until then its bytes
// must stay as they are. A thread can be where no census sees it, in a context that a program keeps
// in its heap (swapcontext() out of a signal handler that interrupted a slot): in a process that
// does so nothing should be reclaimed.
class SlotRooms {
 public:
  static constexpr uint64_t kAlignment = 16;

  // `room` was mapped, and is ours.
  void AddRoom(AddressRange room);
  // `size` bytes from which all of `module` is in reach; nothing if a room must be added first.
  std::optional<AddressRange> Take(uint64_t size, AddressRange module);
  // Nothing leads to `slot` any more but what is on its way there. It must have been taken.
  void Retire(AddressRange slot);
  // Makes those retired slots free that nobody can meet. `census` is begun by whoever calls
  // BeginCensus(): what is retired after that call is not looked at.
  void BeginCensus();
  size_t Reclaim(const ThreadCensus& census);

  [[nodiscard]] size_t retired() const { return retired_.size(); }
  [[nodiscard]] uint64_t free_bytes() const;

 private:
  struct Retired {
    AddressRange slot;
    bool counted = false;  // a census has begun since
  };
  void Free(AddressRange range);

  std::map<Avma, Avma> free_;   // start → end; never adjacent
  std::map<Avma, Avma> taken_;  // start → end
  std::vector<Retired> retired_;
};

}  // namespace stackreel::patch
