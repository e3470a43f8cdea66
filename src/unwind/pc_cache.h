// pc → rule, direct-mapped: the one look-up of a frame whose pc was seen before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/zeroed_array.h"

namespace stackreel::unwind {

// An entry holds for one version of one process's maps, and for the pc as a return address or as an
// instruction's address: its tag.
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

  [[nodiscard]] Entry& At(uint64_t pc) { return entries_[Slot(pc)]; }
  [[nodiscard]] Origin& OriginAt(uint64_t pc) { return origins_[Slot(pc)]; }

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
    entries_ = ZeroedArray<Entry>(kSize);
    known_.fill({});
    next_tag_ = 2;
  }

 private:
  static constexpr unsigned kSizeLog2 = 16;
  static constexpr size_t kSize = size_t{1} << kSizeLog2;
  static size_t Slot(uint64_t pc) { return (pc * 0x9e3779b97f4a7c15) >> (64 - kSizeLog2); }

  struct Known {
    uint64_t version = 0;
    uint32_t tag = 0;
  };
  ZeroedArray<Entry> entries_{kSize};
  ZeroedArray<Origin> origins_{kSize};
  std::array<Known, 256> known_{};
  uint32_t next_tag_ = 2;
};

}  // namespace stackreel::unwind
