// A cursor over bytes that cannot run past their end.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace stackreel {

// Reads forward. A read past the end gives 0 or an empty view and makes ok() false for good, so a
// caller may read a whole structure and check once.
class ByteReader {
 public:
  ByteReader() = default;
  explicit ByteReader(ByteView bytes, Endian endian = Endian::kLittle)
      : bytes_(bytes), endian_(endian) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t offset() const { return offset_; }
  [[nodiscard]] size_t remaining() const { return bytes_.size() - offset_; }
  [[nodiscard]] bool AtEnd() const { return offset_ == bytes_.size(); }
  [[nodiscard]] Endian endian() const { return endian_; }
  [[nodiscard]] ByteView Rest() const { return bytes_.subspan(offset_); }

  uint8_t U8() { return Number<uint8_t>(); }
  uint16_t U16() { return Number<uint16_t>(); }
  uint32_t U32() { return Number<uint32_t>(); }
  uint64_t U64() { return Number<uint64_t>(); }
  int8_t S8() { return static_cast<int8_t>(U8()); }
  int16_t S16() { return static_cast<int16_t>(U16()); }
  int32_t S32() { return static_cast<int32_t>(U32()); }
  int64_t S64() { return static_cast<int64_t>(U64()); }

  // LEB128 (DWARF 5, section 7.6). Bits past 64 are dropped.
  uint64_t Uleb128() {
    // Most numbers take one byte.
    if (!AtEnd() && bytes_[offset_] < 0x80) return bytes_[offset_++];
    return LongUleb128();
  }
  int64_t Sleb128();

  // The next `size` bytes; an empty view and !ok() if there are fewer.
  ByteView Bytes(uint64_t size) {
    if (size > remaining()) {
      Overrun();
      return {};
    }
    ByteView view = bytes_.subspan(offset_, size);
    offset_ += size;
    return view;
  }
  // Text up to a NUL, which is consumed; !ok() if there is no NUL.
  std::string_view CString();
  void Skip(uint64_t size) { Bytes(size); }
  // To an absolute offset, which may be the end.
  void Seek(uint64_t offset) {
    if (offset > bytes_.size()) {
      Overrun();
    } else {
      offset_ = offset;
    }
  }

 private:
  template <typename T>
  T Number() {
    if (sizeof(T) > remaining()) {
      Overrun();
      return 0;
    }
    T value = LoadUnaligned<T>(bytes_.data() + offset_, endian_);
    offset_ += sizeof(T);
    return value;
  }
  uint64_t LongUleb128();
  void Overrun() {
    ok_ = false;
    offset_ = bytes_.size();
  }

  ByteView bytes_;
  size_t offset_ = 0;
  Endian endian_ = Endian::kLittle;
  bool ok_ = true;
};

}  // namespace stackreel
