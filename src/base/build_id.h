// The identity of a binary: the descriptor of its NT_GNU_BUILD_ID note.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace stackreel {

// Up to 20 bytes, as perf.data can carry; longer notes are cut there, as the kernel and perf do.
class BuildId {
 public:
  static constexpr size_t kMaxSize = 20;

  BuildId() = default;
  explicit BuildId(ByteView bytes);
  // From an even number of hex digits; nothing if it is not that.
  static std::optional<BuildId> FromHex(std::string_view hex);

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] ByteView bytes() const { return {bytes_.data(), size_}; }
  [[nodiscard]] std::string ToHex() const;
  // Same id, where one may be padded with zeros to 20 bytes as old recordings do.
  [[nodiscard]] bool Matches(const BuildId& other) const;
  friend auto operator<=>(const BuildId&, const BuildId&) = default;

 private:
  std::array<uint8_t, kMaxSize> bytes_ = {};
  uint8_t size_ = 0;
};

}  // namespace stackreel

template <>
struct std::hash<stackreel::BuildId> {
  size_t operator()(const stackreel::BuildId& id) const noexcept {
    return std::hash<std::string_view>{}(stackreel::AsText(id.bytes()));
  }
};
