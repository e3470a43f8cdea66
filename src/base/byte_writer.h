// Appends numbers and bytes in a chosen byte order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/check.h"

namespace stackreel {

class ByteWriter {
 public:
  explicit ByteWriter(Endian endian = kNativeEndian) : endian_(endian) {}

  [[nodiscard]] size_t size() const { return bytes_.size(); }
  [[nodiscard]] ByteView view() const { return bytes_; }
  [[nodiscard]] Endian endian() const { return endian_; }
  std::vector<uint8_t> Take() { return std::move(bytes_); }
  void Clear() { bytes_.clear(); }

  void U8(uint8_t value) { bytes_.push_back(value); }
  void U16(uint16_t value) { Number(value); }
  void U32(uint32_t value) { Number(value); }
  void U64(uint64_t value) { Number(value); }
  void Bytes(ByteView bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void Text(std::string_view text) { Bytes(AsBytes(text)); }
  void Zeros(size_t count) { bytes_.resize(bytes_.size() + count); }
  // Zeros up to the next multiple of `alignment`, a power of two.
  void AlignTo(size_t alignment) { Zeros((alignment - bytes_.size() % alignment) % alignment); }
  // Overwrites a number written before.
  template <typename T>
  void PutAt(size_t offset, T value) {
    CHECK(offset + sizeof(T) <= bytes_.size());
    StoreUnaligned(bytes_.data() + offset, value, endian_);
  }

 private:
  template <typename T>
  void Number(T value) {
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    StoreUnaligned(bytes_.data() + at, value, endian_);
  }

  std::vector<uint8_t> bytes_;
  Endian endian_;
};

}  // namespace stackreel
