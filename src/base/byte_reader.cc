#include "base/byte_reader.h"

namespace stackreel {

uint64_t ByteReader::LongUleb128() {
  uint64_t value = 0;
  unsigned shift = 0;
  while (true) {
    if (AtEnd()) {
      Overrun();
      return 0;
    }
    const uint8_t byte = bytes_[offset_++];
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) == 0) return value;
  }
}

int64_t ByteReader::Sleb128() {
  uint64_t value = 0;
  unsigned shift = 0;
  while (true) {
    if (AtEnd()) {
      Overrun();
      return 0;
    }
    const uint8_t byte = bytes_[offset_++];
    if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    shift += 7;
    if ((byte & 0x80) == 0) {
      if (shift < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << shift;
      return static_cast<int64_t>(value);
    }
  }
}

std::string_view ByteReader::CString() {
  const std::string_view rest = AsText(Rest());
  const size_t end = rest.find('\0');
  if (end == std::string_view::npos) {
    Overrun();
    return {};
  }
  offset_ += end + 1;
  return rest.substr(0, end);
}

}  // namespace stackreel
