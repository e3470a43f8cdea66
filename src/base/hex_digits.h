// Hexadecimal digits, eight at a time.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace stackreel {

inline constexpr uint64_t kEveryByte = 0x0101010101010101;

// The eight lower-case digits of `value` as they lie in memory, the most significant one in the
// lowest byte. Nibbles are spread to bytes, then '0'..'9' and 'a'..'f' made of all at once.
constexpr uint64_t HexDigits(uint32_t value) {
  uint64_t x = value;
  x = ((x << 16) | x) & 0x0000ffff0000ffff;
  x = ((x << 8) | x) & 0x00ff00ff00ff00ff;
  x = ((x << 4) | x) & 0x0f0f0f0f0f0f0f0f;
  const uint64_t is_letter = ((x + 6 * kEveryByte) >> 4) & kEveryByte;
  return std::byteswap(x + '0' * kEveryByte + is_letter * ('a' - '0' - 10));
}

// The number that eight digits at `text` make, in either case; nothing if one of them is no digit.
inline std::optional<uint32_t> ParseHexDigits(const char* text) {
  const auto digits =
      LoadUnaligned<uint64_t>(reinterpret_cast<const uint8_t*>(text), Endian::kLittle);
  // In ASCII only letters (and what will be refused) have bit 6; bit 5 makes them lower-case.
  const uint64_t is_letter = (digits >> 6) & kEveryByte;
  const uint64_t nibbles = (digits & 0x0f * kEveryByte) + 9 * is_letter;
  uint64_t x = std::byteswap(nibbles);
  x = (x | (x >> 4)) & 0x00ff00ff00ff00ff;
  x = (x | (x >> 8)) & 0x0000ffff0000ffff;
  const auto value = static_cast<uint32_t>(x | (x >> 16));
  if (HexDigits(value) != (digits | (is_letter << 5))) return std::nullopt;
  return value;
}

}  // namespace stackreel
