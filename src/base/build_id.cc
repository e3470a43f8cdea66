#include "base/build_id.h"

#include <algorithm>

namespace stackreel {

namespace {
int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
}  // namespace

BuildId::BuildId(ByteView bytes) : size_(std::min(bytes.size(), kMaxSize)) {
  std::copy_n(bytes.begin(), size_, bytes_.begin());
}

std::optional<BuildId> BuildId::FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0 || hex.size() > 2 * kMaxSize) return std::nullopt;
  BuildId id;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexDigit(hex[i]);
    const int low = HexDigit(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    id.bytes_[id.size_++] = static_cast<uint8_t>(high * 16 + low);
  }
  return id;
}

std::string BuildId::ToHex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t byte : bytes()) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

bool BuildId::Matches(const BuildId& other) const {
  return !empty() && !other.empty() && bytes_ == other.bytes_;
}

}  // namespace stackreel
