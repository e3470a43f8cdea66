#include "patch/journal.h"

#include <gtest/gtest.h>

#include <vector>

#include "patch/fake_site.h"

namespace stackreel::patch {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest()
      : all_({FakeNop(0x1000), FakeJump(0x2000), FakeShortJump(0x3000), FakeSled(0x4000),
              FakeTrap(0x5000)}) {
    for (const Site& site : all_) sites_.push_back(&site);
    bytes_ = EncodeSites(sites_);
  }
  std::vector<Site> all_;
  std::vector<const Site*> sites_;
  std::vector<uint8_t> bytes_;
};

TEST_F(JournalTest, SitesComeBack) {
  const auto decoded = DecodeSites(bytes_);
  ASSERT_TRUE(decoded) << decoded.error().ToString();
  EXPECT_EQ(*decoded, all_);
  EXPECT_TRUE(DecodeSites(EncodeSites({}))->empty());
}

TEST_F(JournalTest, WhatIsCutOffIsFound) {
  for (size_t size = 0; size < bytes_.size(); ++size) {
    EXPECT_FALSE(DecodeSites(ByteView(bytes_).first(size))) << size;
  }
}

TEST_F(JournalTest, ACountIsNotBelieved) {
  for (size_t i = 8; i < 12; ++i) bytes_[i] = 0xff;
  EXPECT_FALSE(DecodeSites(bytes_));
}

// Whatever byte is changed: the sites are right ones, or there is an error.
TEST_F(JournalTest, ChangedBytesGiveWholeSitesOrNone) {
  size_t errors = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    for (const uint8_t change : {1, 0x80, 0xff}) {
      std::vector<uint8_t> changed = bytes_;
      changed[i] ^= change;
      const auto decoded = DecodeSites(changed);
      if (!decoded) {
        ++errors;
        continue;
      }
      for (const Site& site : *decoded) EXPECT_TRUE(CheckSite(site));
    }
  }
  EXPECT_GT(errors, bytes_.size() / 2);
}

TEST_F(JournalTest, OverlappingSitesAreRefused) {
  const Site overlapping = FakeNop(0x5000);
  sites_.push_back(&overlapping);
  EXPECT_FALSE(DecodeSites(EncodeSites(sites_)));
}

TEST_F(JournalTest, AnotherVersionIsToldOf) {
  bytes_[4] = 2;
  EXPECT_EQ(DecodeSites(bytes_).error().kind, ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace stackreel::patch
