// A flat hash from (module, svma) to frames that never move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace stackreel::symbolize {

// Open addressing with linear probing, at most half full: a hit is one or two cache lines. Frames
// are kept in blocks that are never reallocated, so spans stay valid as long as the cache lives.
template <typename Frame>
class FrameCache {
 public:
  // The frames put in for the pair; empty if none were.
  [[nodiscard]] std::span<const Frame> Find(uint32_t module, uint64_t svma) const {
    for (size_t i = IndexOf(module, svma);; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.count == 0) return {};
      if (slot.svma == svma && slot.module == module) return {slot.frames, slot.count};
    }
  }

  // Copies `frames` (at least one) in for a pair that is not there yet.
  std::span<const Frame> Insert(uint32_t module, uint64_t svma, std::span<const Frame> frames) {
    if (2 * (used_ + 1) > slots_.size()) Grow();
    const Frame* stored = Store(frames);
    Place(Slot{svma, stored, module, static_cast<uint32_t>(frames.size())});
    ++used_;
    return {stored, frames.size()};
  }

  [[nodiscard]] size_t size() const { return used_; }

 private:
  struct Slot {
    uint64_t svma = 0;
    const Frame* frames = nullptr;
    uint32_t module = 0;
    uint32_t count = 0;  // 0: the slot is free
  };
  static constexpr size_t kBlockFrames = 1024;

  // Multiplicative hashing (Knuth, TAOCP 6.4): the high bits of the product are the well mixed
  // ones.
  [[nodiscard]] size_t IndexOf(uint32_t module, uint64_t svma) const {
    const uint64_t key = svma ^ (static_cast<uint64_t>(module) * 0xff51afd7ed558ccdULL);
    return static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> 32) & mask_;
  }
  void Place(const Slot& slot) {
    size_t i = IndexOf(slot.module, slot.svma);
    while (slots_[i].count != 0) i = (i + 1) & mask_;
    slots_[i] = slot;
  }
  void Grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.count != 0) Place(slot);
    }
  }
  const Frame* Store(std::span<const Frame> frames) {
    if (frames.size() > block_left_) {
      const size_t size = frames.size() > kBlockFrames ? frames.size() : kBlockFrames;
      blocks_.push_back(std::make_unique<Frame[]>(size));
      block_next_ = blocks_.back().get();
      block_left_ = size;
    }
    Frame* stored = block_next_;
    for (const Frame& frame : frames) *block_next_++ = frame;
    block_left_ -= frames.size();
    return stored;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(1024);
  size_t mask_ = 1023;
  size_t used_ = 0;
  std::vector<std::unique_ptr<Frame[]>> blocks_;
  Frame* block_next_ = nullptr;
  size_t block_left_ = 0;
};

}  // namespace stackreel::symbolize
