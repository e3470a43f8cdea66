// What is known of the originals, and the search for it against one that looks at every place.
#include "anonymize/originals.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <random>
#include <set>
#include <span>

#include "anonymize/verify_bytes.h"

namespace stackreel::anonymize {
namespace {

SeenMappings MappingsAt(const std::vector<uint64_t>& starts) {
  SeenMappings mappings;
  for (const uint64_t start : starts) {
    perfdata::Record record;
    record.type = static_cast<uint32_t>(perfdata::RecordType::kMmap);
    record.misc = static_cast<uint16_t>(start >> 63 != 0 ? perfdata::CpuMode::kKernel
                                                         : perfdata::CpuMode::kUser);
    record.body = perfdata::Mmap{1, 1, start, 0x5000, 0, "/lib/x"};
    mappings.Add(record, 0);
  }
  return mappings;
}

// Bytes with original values among them, at any place and in either order.
std::vector<uint8_t> SomeBytes(std::mt19937_64& random, std::span<const uint64_t> values) {
  std::vector<uint8_t> bytes(random() % 80);
  constexpr std::array<uint8_t, 6> kUsual = {0, 0, 0xff, 0xff, 0x55, 0x7f};
  for (uint8_t& byte : bytes) {
    byte = random() % 2 == 0 ? kUsual[random() % kUsual.size()] : static_cast<uint8_t>(random());
  }
  for (uint64_t i = random() % 4; i > 0 && bytes.size() >= 8; --i) {
    uint64_t value = values[random() % values.size()] + random() % 0x6000;
    if (random() % 2 == 0) value = std::byteswap(value);
    StoreUnaligned(bytes.data() + random() % (bytes.size() - 7), value, Endian::kLittle);
  }
  return bytes;
}

TEST(SearchBytes, FindsWhatLookingAtEveryPlaceFinds) {
  const std::vector<uint64_t> near = {0x555500000000, 0x7f1234567000, 0xffff888000000000,
                                      0xffffffff81000000};
  // Beyond 48 bits, as five levels of page tables allow.
  std::vector<uint64_t> far = near;
  far.push_back(0x00ab000000000000);
  std::mt19937_64 random(3);
  uint64_t all = 0;
  for (const std::vector<uint64_t>& starts : {near, far}) {
    const SeenMappings in = MappingsAt(starts);
    const OriginalValues originals(in, AddressWidth());
    EXPECT_EQ(originals.is_near(), starts.size() == near.size());
    for (int round = 0; round < 20000; ++round) {
      const std::vector<uint8_t> bytes = SomeBytes(random, starts);
      // Numbers throughout: what is no number is searched in further ways.
      static constexpr perfdata::FieldInfo kNumber("number", perfdata::Sensitivity::kNone);
      const FieldSpan span = {0, bytes.size(), &kNumber};
      std::multiset<std::pair<size_t, std::string>> want, got;
      for (size_t i = 0; i + 8 <= bytes.size(); ++i) {
        for (const Endian order : {Endian::kLittle, Endian::kBig}) {
          const auto value = LoadUnaligned<uint64_t>(bytes.data() + i, order);
          const bool counts = i % 8 == 0 || order == Endian::kLittle;
          if (!counts || !originals.HasAddress(value)) continue;
          want.emplace(i, "an address in " + originals.Describe(value));
        }
      }
      SearchBytes(bytes, {&span, 1}, Endian::kLittle, originals, [&](const ByteHit& hit) {
        got.emplace(hit.offset, hit.value.substr(hit.value.find(", ") + 2));
      });
      ASSERT_EQ(got, want);
      all += got.size();
    }
  }
  EXPECT_GT(all, 20000u);
}

TEST(AddressRanges, SaysOfEachAddressWhetherItIsInOne) {
  AddressRanges ranges;
  for (const auto& [start, end] : {std::pair<uint64_t, uint64_t>{0x10100, 0x10200},
                                   {0x20000, 0x23000},
                                   {0x22fff, 0x24801},
                                   {0x50000, 0x50001}}) {
    ranges.Add(start, end);
  }
  ranges.Join();
  for (int turn = 0; turn < 2; ++turn) {  // the second by what the first left behind
    for (uint64_t at = 0xf000; at < 0x52000; ++at) {
      const bool want =
          (at >= 0x10100 && at < 0x10200) || (at >= 0x20000 && at < 0x24801) || at == 0x50000;
      ASSERT_EQ(ranges.Has(at), want) << at;
    }
  }
  EXPECT_FALSE(AddressRanges().Has(0));
}

}  // namespace
}  // namespace stackreel::anonymize
