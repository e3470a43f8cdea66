// pc → rule, by sets of a cache line each: the one look-up of a frame whose pc was seen before.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/zeroed_array.h"

namespace stackreel::unwind {

// An entry holds for one version of one process's maps, and for the pc as a return address or as an
// instruction's address: its tag. What a set has no room for takes the place of what is there
// for longest.
class PcCache {
 public:
  struct Entry {
    uint64_t pc = 0;
    uint32_t tag = 0;  // TagOf(version), + 1 for an instruction's address; 0: empty
    uint32_t rule = 0;
  };
  static_assert(sizeof(Entry) == 16);

  // What an entry was found in, so that it can be seen to hold for another version too.
  struct Origin {
    uint32_t module_serial = 0;  // 0: no module
    uint64_t bias = 0;
    friend bool operator==(const Origin&, const Origin&) = default;
  };

  // Null if it is not there; good until the next call.
  [[nodiscard]] const Entry* Find(uint64_t pc, uint32_t tag) const {
    for (const Entry& entry : sets_[SetOf(pc)]) {
      if (entry.pc == pc && entry.tag == tag) return &entry;
    }
    return nullptr;
  }
  // What an entry of another version says, if it comes from `origin` too, which has a module; the
  // entry is of this version then.
  const Entry* TakeOver(uint64_t pc, uint32_t tag, const Origin& origin) {
    const size_t at = SetOf(pc);
    for (size_t way = 0; way < kWays; ++way) {
      Entry& entry = sets_[at][way];
      const bool same = entry.pc == pc && entry.tag != 0 && ((entry.tag ^ tag) & 1) == 0;
      if (!same || origins_[at][way] != origin) continue;
      entry.tag = tag;
      return &entry;
    }
    return nullptr;
  }
  void Insert(const Entry& entry, const Origin& origin) {
    const size_t at = SetOf(entry.pc);
    const auto put_first = [](auto& ways, const auto& added) {
      std::copy_backward(ways.begin(), ways.end() - 1, ways.end());
      ways.front() = added;
    };
    put_first(sets_[at], entry);
    put_first(origins_[at], origin);
  }

  // An even number for a version of maps; never 0.
  uint32_t TagOf(uint64_t version) {
    Known& known = known_[version % known_.size()];
    if (known.tag == 0 || known.version != version) {
      if (next_tag_ == 0) Clear();
      known = {version, next_tag_};
      next_tag_ += 2;
    }
    return known.tag;
  }
  void Clear() {
    sets_ = ZeroedArray<Set>(kSets);
    known_.fill({});
    next_tag_ = 2;
  }

 private:
  static constexpr size_t kWays = 4;
  static constexpr unsigned kSetsLog2 = 14;
  static constexpr size_t kSets = size_t{1} << kSetsLog2;
  // The newest come first.
  struct alignas(64) Set : std::array<Entry, kWays> {};
  static_assert(sizeof(Set) == 64);
  using Origins = std::array<Origin, kWays>;

  static size_t SetOf(uint64_t pc) { return (pc * 0x9e3779b97f4a7c15) >> (64 - kSetsLog2); }

  struct Known {
    uint64_t version = 0;
    uint32_t tag = 0;
  };
  ZeroedArray<Set> sets_{kSets};
  ZeroedArray<Origins> origins_{kSets};
  std::array<Known, 256> known_{};
  uint32_t next_tag_ = 2;
};

}  // namespace stackreel::unwind
