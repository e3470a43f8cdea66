#include "anonymize/swapped_spans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "anonymize/fake_leaks.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

constexpr uint64_t kGB = uint64_t{1} << 30;

TEST(SwappedSpans, KnowsWhatIsAnothersWhenItIsSwapped) {
  const std::vector<Span> spans = {{0xffffffff81000000, 0xffffffff82000000},
                                   {0x7ff0bc490000, 0x7ff0bc491000},
                                   {0x100000000000, 0x110000000000}};
  const SwappedSpans swapped(spans);
  EXPECT_TRUE(swapped.Has(0x49bcf07f0000));
  EXPECT_FALSE(swapped.Has(0x4abcf07f0000));
  EXPECT_FALSE(swapped.Has(0x7ff0bc490000));
  EXPECT_TRUE(swapped.HasAnyOf(0x49bcf07ef000, 0x49bcf07f1000));
  EXPECT_FALSE(swapped.HasAnyOf(0x49bcf07f1000, 0x49bcf0800000));
  EXPECT_FALSE(swapped.HasAnyOf(0x49bcf07ef000, 0x49bcf07f0000));
  // The last byte of 64 KB, of a kernel's.
  EXPECT_TRUE(swapped.Has(0x00000081ffffffff));
  EXPECT_TRUE(swapped.HasAnyOf(0x00000081ffff0000, 0x0000008200000000));
  EXPECT_FALSE(swapped.HasAnyOf(0x00000081ffff0000, 0x00000081fffff000));
  // In one that is larger than 4 GB only the ends.
  EXPECT_TRUE(swapped.Has(std::byteswap(uint64_t{0x100000000000})));
  EXPECT_TRUE(swapped.Has(std::byteswap(uint64_t{0x10fffffff000})));
  EXPECT_FALSE(swapped.Has(std::byteswap(uint64_t{0x108000000000})));
}

// 256 mappings of 4 GB, which together are all addresses that begin with 0x7f: of small ones that
// lie apart one in 4096 would look so.
Recording CrowdedRecording(uint64_t small) {
  Recording in({SomeEvent(0)});
  for (uint64_t i = 0; i < 256; ++i) {
    in.Map(kPid, 0x7f0000000000 + i * 4 * kGB, 4 * kGB, 0, "/lib/big" + std::to_string(i));
  }
  for (uint64_t i = 0; i < small; ++i) {
    const uint64_t start = 0x550000000000 + i * 0x100000;
    in.Map(kPid, start, 0x1000, start, "//anon");
  }
  in.SampleAt(kPid, 0x7f0000000123);
  return in;
}

// Rule: no new address is one of an original mapping with its bytes the other way round.
TEST(SwappedSpans, NoMappingMovesToAnAddressThatSwappedIsAnOriginal) {
  constexpr uint64_t kSmall = 500;
  const Bytes bytes = CrowdedRecording(kSmall).Finish();
  for (uint64_t number = 0; number < 64; ++number) {
    const std::string secret = "a secret with a number, " + std::to_string(number);
    const auto key = Key::FromSecret(AsBytes(secret));
    ASSERT_TRUE(key);
    const Bytes out = AnonymizedBytes(bytes, {}, *key);
    for (const auto& mapping : Read(out).All<perfdata::Mmap2>()) {
      const uint64_t swapped = std::byteswap(mapping.addr);
      EXPECT_FALSE(swapped >> 40 == 0x7f) << std::hex << mapping.addr << " by key " << number;
    }
    const auto verdict = VerifyBytes(bytes, out, {});
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(verdict->clean()) << TextOf(*verdict);
  }
}

// The same of addresses outside all mappings.
TEST(SwappedSpans, NoPseudonymIsAnOriginalWhenItIsSwapped) {
  Recording in = CrowdedRecording(0);
  constexpr uint64_t kOutside = 0x300000000000;
  for (uint64_t i = 0; i < 20'000; ++i) in.SampleAt(kPid, kOutside + i * 0x1000);
  const Read out = Anonymized(in.Finish());
  for (const auto& sample : out.samples) {
    EXPECT_FALSE(std::byteswap(uint64_t{sample.ip}) >> 40 == 0x7f) << std::hex << sample.ip;
  }
}

}  // namespace
}  // namespace stackreel::anonymize
