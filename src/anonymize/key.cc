#include "anonymize/key.h"

#include <sodium.h>

#include <bit>
#include <vector>

#include "base/byte_writer.h"
#include "base/check.h"

namespace stackreel::anonymize {
namespace {

constexpr size_t kMinSecret = 16;
static_assert(KeyedHash::kKeySize == crypto_shorthash_KEYBYTES);

void InitSodium() {
  // 1: was done already. It fails only where the system gives no random numbers.
  static const int kReady = sodium_init();
  CHECK(kReady >= 0);
}

void Hash(std::span<uint8_t> out, ByteView text, ByteView key) {
  CHECK(crypto_generichash(out.data(), out.size(), text.data(), text.size(), key.data(),
                           key.size()) == 0);
}

}  // namespace

uint64_t KeyedHash::OfBytes(ByteView bytes) const {
  std::array<uint8_t, crypto_shorthash_BYTES> out;
  crypto_shorthash(out.data(), bytes.data(), bytes.size(), key_.data());
  return LoadUnaligned<uint64_t>(out.data(), Endian::kLittle);
}

uint64_t KeyedHash::Of(std::initializer_list<uint64_t> numbers) const {
  constexpr size_t kMost = 8;
  std::array<uint8_t, 8 * kMost> bytes;
  CHECK(numbers.size() <= kMost);
  size_t size = 0;
  for (const uint64_t number : numbers) {
    StoreUnaligned(bytes.data() + size, number, Endian::kLittle);
    size += 8;
  }
  return OfBytes(ByteView(bytes).first(size));
}

std::string KeyedHash::NameOf(std::string_view text, size_t letters) const {
  constexpr std::string_view kLetters = "ghjkmnqrstuvwxyz";
  std::string name;
  uint64_t bits = OfBytes(AsBytes(text));
  for (size_t i = 0; i < letters; ++i) {
    if (i != 0 && i % 16 == 0) bits = Of({bits, i});
    name += kLetters[bits % kLetters.size()];
    bits = std::rotr(bits, 4);
  }
  return name;
}

// A Feistel network over the least even number of bits that holds `count`, walked until the result
// lies in range: at most 4 values of it for each of [0, count), so a few steps on average.
uint64_t KeyedHash::Permute(uint64_t index, uint64_t count, uint64_t region) const {
  CHECK(index < count);
  if (count == 1) return 0;
  const auto half = static_cast<unsigned>(std::bit_width(count - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  constexpr unsigned kRounds = 4;
  do {
    uint64_t left = index >> half;
    uint64_t right = index & mask;
    for (unsigned round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (Of({region, count, round, right}) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

Key Key::Random() {
  InitSodium();
  Key key;
  randombytes_buf(key.bytes_.data(), key.bytes_.size());
  return key;
}

Result<Key> Key::FromSecret(ByteView secret) {
  InitSodium();
  if (secret.size() < kMinSecret) {
    return Fail(Error(ErrorKind::kUsage, "a key of " + std::to_string(secret.size()) +
                                             " bytes is too short: at least " +
                                             std::to_string(kMinSecret) + " are needed")
                    .WithCure("head -c 32 /dev/urandom > FILE   to make a key"));
  }
  Key key;
  Hash(key.bytes_, secret, {});
  return key;
}

Key::~Key() { sodium_memzero(bytes_.data(), bytes_.size()); }

KeyedHash Key::For(std::string_view purpose) const {
  std::array<uint8_t, KeyedHash::kKeySize> derived;
  Hash(derived, AsBytes(purpose), bytes_);
  return KeyedHash(derived);
}

}  // namespace stackreel::anonymize
