#include "base/hex_digits.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

namespace stackreel {
namespace {

std::string Text(uint32_t value) {
  std::array<uint8_t, 8> bytes;
  StoreUnaligned(bytes.data(), HexDigits(value), Endian::kLittle);
  return std::string(AsText(bytes));
}

TEST(HexDigitsTest, WritesEveryDigit) {
  EXPECT_EQ(Text(0), "00000000");
  EXPECT_EQ(Text(0x01234567), "01234567");
  EXPECT_EQ(Text(0x89abcdef), "89abcdef");
}

TEST(HexDigitsTest, ReadsWhatItWrites) {
  for (uint64_t value = 0; value <= UINT32_MAX; value += 0x10001 * 37) {
    const auto number = static_cast<uint32_t>(value);
    EXPECT_EQ(ParseHexDigits(Text(number).c_str()), number);
  }
  EXPECT_EQ(ParseHexDigits("89ABCDEF"), 0x89abcdef);
}

TEST(HexDigitsTest, RefusesWhatIsNoDigit) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_digit = byte != 0 && std::strchr("0123456789abcdefABCDEF", byte) != nullptr;
    for (size_t at = 0; at < 8; ++at) {
      std::string text = "ffffffff";
      text[at] = static_cast<char>(byte);
      EXPECT_EQ(ParseHexDigits(text.c_str()).has_value(), is_digit) << byte << " at " << at;
    }
  }
}

}  // namespace
}  // namespace stackreel
