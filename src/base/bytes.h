// Views of bytes and the byte order they are in.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace stackreel {

// Bytes that somebody else owns.
using ByteView = std::span<const uint8_t>;

enum class Endian : uint8_t { kLittle, kBig };
inline constexpr Endian kNativeEndian =
    std::endian::native == std::endian::little ? Endian::kLittle : Endian::kBig;

// The value of type T at `p`, which need not be aligned.
template <typename T>
T LoadUnaligned(const uint8_t* p, Endian endian) {
  T value;
  std::memcpy(&value, p, sizeof(T));
  if constexpr (sizeof(T) > 1) {
    if (endian != kNativeEndian) value = std::byteswap(value);
  }
  return value;
}

template <typename T>
void StoreUnaligned(uint8_t* p, T value, Endian endian) {
  if constexpr (sizeof(T) > 1) {
    if (endian != kNativeEndian) value = std::byteswap(value);
  }
  std::memcpy(p, &value, sizeof(T));
}

inline ByteView AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
// The text up to the first NUL, or all of it.
inline std::string_view TextUpToNul(ByteView bytes) {
  std::string_view text = AsText(bytes);
  return text.substr(0, text.find('\0'));
}

}  // namespace stackreel
