// The records of uftrace's .dat files: 16 bytes, little-endian.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace stackreel::tracedata {

enum class UftraceType : uint8_t { kEntry = 0, kExit = 1, kLost = 2, kEvent = 3 };

struct UftraceRecord {
  static constexpr size_t kSize = 16;
  static constexpr uint64_t kMagic = 5;
  static constexpr uint32_t kMaxDepth = 1023;
  static constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;

  uint64_t nanoseconds = 0;
  UftraceType type = UftraceType::kEntry;
  bool more = false;   // a payload follows
  bool is_one = true;  // its magic is right
  uint32_t depth = 0;
  uint64_t address = 0;  // kLost: how many; kEvent: which

  static UftraceRecord Decode(const uint8_t* bytes) {
    const auto word = LoadUnaligned<uint64_t>(bytes + 8, Endian::kLittle);
    return {.nanoseconds = LoadUnaligned<uint64_t>(bytes, Endian::kLittle),
            .type = static_cast<UftraceType>(word & 3),
            .more = (word >> 2 & 1) != 0,
            .is_one = (word >> 3 & 7) == kMagic,
            .depth = static_cast<uint32_t>(word >> 6 & kMaxDepth),
            .address = word >> 16};
  }
  void Encode(uint8_t* bytes) const {
    StoreUnaligned(bytes, nanoseconds, Endian::kLittle);
    const uint64_t word = uint64_t{static_cast<uint8_t>(type)} | uint64_t{more} << 2 | kMagic << 3 |
                          uint64_t{depth & kMaxDepth} << 6 | (address & kAddressMask) << 16;
    StoreUnaligned(bytes + 8, word, Endian::kLittle);
  }
};

}  // namespace stackreel::tracedata
