#include "perfdata/chain_tail.h"

#include <gtest/gtest.h>

namespace stackreel::perfdata {
namespace {

std::vector<uint8_t> Chain(size_t entries, size_t outer, uint8_t inner_byte) {
  std::vector<uint8_t> bytes(8 * entries);
  for (size_t i = 0; i < entries; ++i) {
    const size_t from_end = entries - i;
    const auto byte = from_end <= outer ? static_cast<uint8_t>(from_end) : inner_byte;
    std::fill_n(bytes.data() + 8 * i, 8, byte);
  }
  return bytes;
}

// Of any length, below and above what is compared at once.
TEST(ChainTail, FindsHowManyEntriesAtTheEndAreEqual) {
  for (const size_t outer : {0, 1, 15, 16, 17, 31, 32, 33, 50}) {
    ChainTail tail;
    EXPECT_EQ(tail.EqualTo(Chain(outer + 3, outer, 0xaa)), 0);
    tail.Keep(Chain(outer + 3, outer, 0xaa), 0);
    const auto longer = Chain(outer + 40, outer, 0xbb), same = Chain(outer + 3, outer, 0xaa);
    EXPECT_EQ(tail.EqualTo(longer), 8 * outer);
    EXPECT_EQ(tail.EqualTo(same), same.size());
    EXPECT_EQ(tail.EqualTo(ByteView(longer).last(8 * outer)), 8 * outer);
    tail.Keep(longer, tail.EqualTo(longer));
    EXPECT_TRUE(std::ranges::equal(tail.Kept(), longer));
    tail.Keep(same, tail.EqualTo(same));
    EXPECT_TRUE(std::ranges::equal(tail.Kept(), same));
  }
}

// Entries that are equal in part are not.
TEST(ChainTail, ComparesWholeEntries) {
  ChainTail tail;
  std::vector<uint8_t> chain = Chain(4, 4, 0);
  tail.Keep(chain, 0);
  chain[8] = 0xff;  // of the second entry the first byte
  EXPECT_EQ(tail.EqualTo(chain), 16);
  tail.Forget();
  EXPECT_EQ(tail.EqualTo(chain), 0);
}

}  // namespace
}  // namespace stackreel::perfdata
