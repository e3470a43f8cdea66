#include "anonymize/key.h"

#include <gtest/gtest.h>

#include <set>

namespace stackreel::anonymize {
namespace {

Key KeyOf(std::string_view secret) { return *Key::FromSecret(AsBytes(secret)); }

TEST(Key, EqualSecretsGiveEqualHashesAndOthersOthers) {
  const KeyedHash a = KeyOf("a secret of 20 bytes").For("places");
  const KeyedHash same = KeyOf("a secret of 20 bytes").For("places");
  const KeyedHash other_key = KeyOf("another secret of 26 bytes").For("places");
  const KeyedHash other_purpose = KeyOf("a secret of 20 bytes").For("pages");
  EXPECT_EQ(a.Of({1, 2}), same.Of({1, 2}));
  EXPECT_NE(a.Of({1, 2}), other_key.Of({1, 2}));
  EXPECT_NE(a.Of({1, 2}), other_purpose.Of({1, 2}));
  EXPECT_NE(Key::Random().For("places").Of({1}), Key::Random().For("places").Of({1}));
}

TEST(Key, RefusesAShortSecret) {
  const Result<Key> key = Key::FromSecret(AsBytes("15 bytes of it."));
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().kind, ErrorKind::kUsage);
  EXPECT_NE(key.error().cure, "");
}

TEST(KeyedHash, PermutesEachRangeOntoItself) {
  const KeyedHash hash = KeyOf("a secret of 20 bytes").For("pages");
  for (const uint64_t count : {1, 2, 3, 7, 64, 65, 1000}) {
    std::set<uint64_t> images;
    for (uint64_t i = 0; i < count; ++i) images.insert(hash.Permute(i, count, 5));
    EXPECT_EQ(images.size(), count);
    EXPECT_LT(*images.rbegin(), count);
  }
  std::set<uint64_t> by_region;
  for (uint64_t region = 0; region < 8; ++region) by_region.insert(hash.Permute(3, 1000, region));
  EXPECT_GT(by_region.size(), 4);
}

TEST(KeyedHash, NamesHaveNoHexDigits) {
  const KeyedHash hash = KeyOf("a secret of 20 bytes").For("names");
  const std::string name = hash.NameOf("mysqld", 20);
  EXPECT_EQ(name.size(), 20);
  EXPECT_EQ(name.find_first_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(hash.NameOf("mysqld", 20), name);
  EXPECT_EQ(hash.NameOf("mysqld", 10'000).find_first_of("p`"), std::string::npos);
  EXPECT_NE(hash.NameOf("mysqle", 20), name);
}

}  // namespace
}  // namespace stackreel::anonymize
