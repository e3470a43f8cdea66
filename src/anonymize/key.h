// The secret that pseudonyms and new addresses are made from. By libsodium: BLAKE2b derives, and
// SipHash-2-4 is the keyed hash of single values.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/error.h"

namespace stackreel::anonymize {

// A keyed hash for one purpose. Without the key nothing about a value follows from its hash.
class KeyedHash {
 public:
  static constexpr size_t kKeySize = 16;
  explicit KeyedHash(const std::array<uint8_t, kKeySize>& key) : key_(key) {}

  [[nodiscard]] uint64_t OfBytes(ByteView bytes) const;
  [[nodiscard]] uint64_t Of(std::initializer_list<uint64_t> numbers) const;
  // A name of `letters` letters, none of them a hex digit, so that no name is taken for a number;
  // and none is 'p' (70h), so that no bytes of it with zeros around them are a multiple of 4096,
  // which an original address of 32 bits could be.
  [[nodiscard]] std::string NameOf(std::string_view text, size_t letters = 12) const;
  // A permutation of [0, count), other for each `region`. `index` must be less than `count`.
  [[nodiscard]] uint64_t Permute(uint64_t index, uint64_t count, uint64_t region) const;

 private:
  std::array<uint8_t, kKeySize> key_;
};

class Key {
 public:
  // From the system's random numbers, for one run.
  static Key Random();
  // From the content of a key file, at least 16 bytes; kUsage if it is shorter. Equal secrets give
  // equal keys.
  static Result<Key> FromSecret(ByteView secret);
  ~Key();
  Key(const Key&) = default;
  Key& operator=(const Key&) = default;

  // Hashes for different purposes tell nothing of each other.
  [[nodiscard]] KeyedHash For(std::string_view purpose) const;

 private:
  Key() = default;
  std::array<uint8_t, 32> bytes_ = {};
};

}  // namespace stackreel::anonymize
