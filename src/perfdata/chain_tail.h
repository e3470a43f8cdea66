// A call chain, and what the next one has in common with it: chains of one thread mostly end alike,
// as functions far out go on for long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/bytes.h"

namespace stackreel::perfdata {

// Keeps the bytes of the last chain, 64-bit entries, at the end of its memory, so that of the next
// one only what differs is copied.
class ChainTail {
 public:
  // How many bytes at the end of `chain` are those at the end of what is kept; whole entries.
  [[nodiscard]] size_t EqualTo(ByteView chain) const {
    const size_t most = std::min(chain.size(), size_);
    const uint8_t* const a = chain.data() + chain.size();
    const uint8_t* const b = bytes_.data() + bytes_.size();
    size_t equal = 0;
    while (equal + kBlock <= most &&
           std::memcmp(a - equal - kBlock, b - equal - kBlock, kBlock) == 0) {
      equal += kBlock;
    }
    while (equal + kEntry <= most &&
           std::memcmp(a - equal - kEntry, b - equal - kEntry, kEntry) == 0) {
      equal += kEntry;
    }
    return equal;
  }
  // Keeps `chain`, of which the last `equal` bytes are what is kept already.
  void Keep(ByteView chain, size_t equal) {
    if (chain.size() > bytes_.size()) {
      std::vector<uint8_t> larger(2 * chain.size());
      std::ranges::copy(Kept(), larger.end() - static_cast<std::ptrdiff_t>(size_));
      bytes_ = std::move(larger);
    }
    std::copy_n(chain.data(), chain.size() - equal, bytes_.data() + bytes_.size() - chain.size());
    size_ = chain.size();
  }
  void Forget() { size_ = 0; }
  [[nodiscard]] ByteView Kept() const { return ByteView(bytes_).last(size_); }

 private:
  static constexpr size_t kEntry = sizeof(uint64_t);
  static constexpr size_t kBlock = 16 * kEntry;
  std::vector<uint8_t> bytes_;
  size_t size_ = 0;
};

}  // namespace stackreel::perfdata
