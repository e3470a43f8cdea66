#include "x86/relative_relocations.h"

#include <gtest/gtest.h>

#include "base/byte_writer.h"

namespace stackreel::x86 {
namespace {

TEST(ReadRela, TakesTheRelativeOnes) {
  ByteWriter rela(Endian::kLittle);
  for (const auto& [place, info, value] :
       {std::tuple{0x3000U, 8U, 0x1234U}, {0x3008U, 6U, 0U}, {0x3010U, 8U, 0x5678U}}) {
    rela.U64(place);
    rela.U64(info);
    rela.U64(value);
  }
  rela.U64(0x9999);  // half an entry
  EXPECT_EQ(ReadRela(rela.view()), (std::vector<RelativeRelocation>{{Svma(0x3000), Svma(0x1234)},
                                                                    {Svma(0x3010), Svma(0x5678)}}));
}

TEST(ReadRelr, FollowsAddressesAndBitmaps) {
  ByteWriter data(Endian::kLittle);  // at 0x3000: each word is its own index
  for (uint64_t i = 0; i < 80; ++i) data.U64(i);
  const LoadedBytes loaded = [&](Svma svma) {
    if (svma < Svma(0x3000) || svma - Svma(0x3000) >= data.size()) return ByteView();
    return data.view().subspan(svma - Svma(0x3000));
  };
  ByteWriter relr(Endian::kLittle);
  relr.U64(0x3000);
  relr.U64(0b1011);       // the 1st and 3rd of the 63 words behind it
  relr.U64(1 | 1U << 1);  // the 1st of the 63 after those
  relr.U64(0x9000);       // outside
  const auto found = ReadRelr(relr.view(), loaded);
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0], (RelativeRelocation{Svma(0x3000), Svma(0)}));
  EXPECT_EQ(found[1], (RelativeRelocation{Svma(0x3008), Svma(1)}));
  EXPECT_EQ(found[2], (RelativeRelocation{Svma(0x3018), Svma(3)}));
  EXPECT_EQ(found[3], (RelativeRelocation{Svma(0x3000 + 64 * 8), Svma(64)}));
}

}  // namespace
}  // namespace stackreel::x86
