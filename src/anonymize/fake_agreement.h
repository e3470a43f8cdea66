// For tests: whether the verifier accepts what the transform makes of odd recordings.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>

#include "anonymize/fake_leaks.h"

namespace stackreel::anonymize::fake {

inline constexpr uint64_t kText = 0x555500000000;

// What becomes of records that do not decode.
enum class Damage : uint8_t { kRefused, kLeftOut };

// Anonymises and verifies at all levels, into files and pipes.
inline void ExpectAgreement(const Bytes& in, Damage damage = Damage::kRefused) {
  for (const Level level : {Level::kAddresses, Level::kIdentity, Level::kSymbols}) {
    for (const Container container : {Container::kFile, Container::kPipe}) {
      Options options;
      options.level = level;
      options.container = container;
      options.salvage = damage == Damage::kLeftOut;
      VerifyOptions verify;
      verify.level = level;
      verify.must_be_marked = true;
      verify.salvaged = options.salvage;
      const auto verdict = VerifyBytes(in, AnonymizedBytes(in, options), verify);
      ASSERT_TRUE(verdict) << verdict.error().ToString();
      EXPECT_TRUE(verdict->clean()) << LevelName(level) << ":\n" << TextOf(*verdict);
      EXPECT_GT(verdict->samples, 0);
    }
  }
}

// For recordings of each byte order.
class AgreementEach : public testing::TestWithParam<Endian> {
 protected:
  // A record of words as they are.
  [[nodiscard]] static Bytes RecordOf(RecordType type, std::initializer_list<uint64_t> words) {
    ByteWriter out(GetParam());
    out.U32(static_cast<uint32_t>(type));
    out.U16(2);
    out.U16(static_cast<uint16_t>(8 + 8 * words.size()));
    for (const uint64_t word : words) out.U64(word);
    return out.Take();
  }
  [[nodiscard]] static perfdata::WriterOptions options() { return {.endian = GetParam()}; }
};

}  // namespace stackreel::anonymize::fake
