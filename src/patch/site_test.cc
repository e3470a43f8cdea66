#include "patch/site.h"

#include <gtest/gtest.h>

#include <vector>

#include "patch/fake_site.h"

namespace stackreel::patch {
namespace {

std::vector<uint8_t> Bytes(ByteView view) { return {view.begin(), view.end()}; }
std::vector<uint8_t> Patched(const Site& site) { return Bytes(site.patched.view()); }
std::vector<Site> OneOfEach() {
  return {FakeNop(0x1000),  FakeCall(0x1000),     FakeJump(0x1000), FakeShortJump(0x1000),
          FakeSled(0x1000), FakeExitSled(0x1000), FakeTrap(0x1000)};
}

TEST(SiteTest, PatchedFormsJumpToTheStub) {
  EXPECT_EQ(Patched(FakeNop(0x1000)), Hex("e9 fb ff 00 00"));
  EXPECT_EQ(Patched(FakeJump(0x1000)), Hex("e9 fb ff 00 00 83 ec 10")) << "what is behind stays";
  EXPECT_EQ(Patched(FakeShortJump(0x1000)), Hex("e9 00 00 01 00 eb f9"));
  EXPECT_EQ(Patched(FakeSled(0x1000)), Hex("eb 00 e9 f9 ff 00 00 00 02 00 00"));
  EXPECT_EQ(Patched(FakeExitSled(0x1000)), Hex("eb 00 e9 f9 ff 00 00 00 02 00 00"));
  EXPECT_EQ(Patched(FakeTrap(0x1000)), Hex("cc"));
}

TEST(SiteTest, SitesOfEachKindAreWhole) {
  for (const Site& site : OneOfEach()) {
    const auto checked = CheckSite(site);
    EXPECT_TRUE(checked) << checked.error().ToString();
  }
}

// An endbr64 may stand between the padding and the entry, and stays there.
TEST(SiteTest, AShortJumpMayLeadOverAnEndbr) {
  Site site = FakeShortJump(0x1000);
  site.before = 9;
  site.original = SiteBytes(Hex("cc cc cc cc cc f3 0f 1e fa 55 5d"));
  site.patched = *MakePatchedForm(site);
  EXPECT_EQ(Patched(site), Hex("e9 04 00 01 00 f3 0f 1e fa eb f5"));
  EXPECT_TRUE(CheckSite(site));
  EXPECT_EQ(site.Landing(), Avma(0x1000 - 9));
  EXPECT_EQ(Bytes(BytesOf(site, Part::kAside, Form::kOriginal)), Hex("cc cc cc cc cc"));
  site.before = 10;
  EXPECT_FALSE(CheckSite(site));
}

// ret; what is behind it, within the branch, is padding.
TEST(SiteTest, AFunctionMayBeShorterThanTheBranch) {
  Site site = FakeSite(SiteKind::kJump, 0x1000, "c3 cc cc cc cc");
  site.map.Add({0, 0});
  site.map.Add({1, 1});
  EXPECT_TRUE(CheckSite(site));
}

TEST(SiteTest, AStubOutOfReachIsRefused) {
  Site site = FakeNop(0x1'0000'0000);
  site.stub = site.address + 5 + 0x7fff'ffff;
  EXPECT_TRUE(MakePatchedForm(site));
  site.stub = site.stub + 1;
  EXPECT_EQ(MakePatchedForm(site).error(), Refusal::kOutOfReach);
  site.stub = site.address + 5 - 0x8000'0000;
  EXPECT_TRUE(MakePatchedForm(site));
  site.stub = site.stub - 1;
  EXPECT_EQ(MakePatchedForm(site).error(), Refusal::kOutOfReach);
}

TEST(SiteTest, TooShortAnOriginalIsRefused) {
  for (Site site : OneOfEach()) {
    site.original.length -= site.kind == SiteKind::kJump ? 4 : 1;
    EXPECT_EQ(MakePatchedForm(site).error(), Refusal::kTooShort) << x86::NameOf(site.kind);
  }
}

TEST(SiteTest, WhatIsNotWholeIsFound) {
  const auto bad = [](Site site, auto&& change) {
    change(site);
    return !CheckSite(site);
  };
  EXPECT_TRUE(bad(FakeNop(0x1000), [](Site& s) { s.kind = static_cast<SiteKind>(77); }));
  EXPECT_TRUE(bad(FakeNop(0x1000), [](Site& s) { s.original.length = 200; }));
  EXPECT_TRUE(bad(FakeNop(0x1000), [](Site& s) { s.before = 5; }));
  EXPECT_TRUE(bad(FakeNop(0x1000), [](Site& s) { s.stub = s.stub + 1; }));
  EXPECT_TRUE(bad(FakeNop(0x1000), [](Site& s) { s.original.bytes[0] = kTrapByte; }));
  EXPECT_TRUE(bad(FakeNop(0), [](Site&) {}));
  EXPECT_TRUE(bad(FakeNop(~uint64_t{0} - 2), [](Site&) {}));
  EXPECT_TRUE(bad(FakeSled(0x1000), [](Site& s) { s.original.bytes[1] = 7; }));
  EXPECT_TRUE(bad(FakeJump(0x1000), [](Site& s) { s.patched.bytes[6] = 0; }));
  EXPECT_TRUE(bad(FakeJump(0x1000), [](Site& s) { s.map.Add({9, 9}); }));
  EXPECT_TRUE(bad(FakeJump(0x1000), [](Site& s) { s.map = {}, s.map.Add({0, 0}); }));
}

TEST(SiteTest, ASiteMayCallItsStub) {
  Site site = FakeCall(0x1000);
  EXPECT_EQ(site.PushedReturnAddress(), Avma(0));
  site.patched.bytes[0] = 0xe8;
  EXPECT_TRUE(CheckSite(site));
  EXPECT_EQ(site.PushedReturnAddress(), Avma(0x1005));
  Site prologue = FakeJump(0x1000);
  prologue.patched.bytes[0] = 0xe8;
  EXPECT_FALSE(CheckSite(prologue));
}

TEST(SiteTest, PartsCoverWhatDiffers) {
  for (const Site& site : OneOfEach()) {
    std::vector<bool> covered(site.original.length);
    for (const Part part : {Part::kHead, Part::kTail, Part::kAside}) {
      const PartRange range = RangeOf(site, part);
      for (size_t i = range.offset; i < range.end(); ++i) {
        EXPECT_FALSE(covered[i]) << x86::NameOf(site.kind);
        covered[i] = true;
      }
    }
    EXPECT_EQ(RangeOf(site, Part::kHead).length, 1) << "one store switches it";
    for (size_t i = 0; i < covered.size(); ++i) {
      EXPECT_TRUE(covered[i] || site.original.bytes[i] == site.patched.bytes[i]);
    }
  }
}

TEST(SiteTest, MemoryTellsHowFarAnExecutionCame) {
  const Site site = FakeShortJump(0x1000);
  const auto assess = [&](std::string_view memory) { return Assess(site, Hex(memory)); };
  EXPECT_EQ(assess("cc cc cc cc cc 55 5d"), MemoryForm::kOriginal);
  EXPECT_EQ(assess("e9 00 00 01 00 eb f9"), MemoryForm::kPatched);
  EXPECT_EQ(assess("e9 00 00 01 00 55 5d"), MemoryForm::kAsideLeft);
  EXPECT_EQ(assess("e9 00 cc cc cc 55 5d"), MemoryForm::kAsideLeft);
  EXPECT_EQ(assess("e9 00 00 01 00 cc 5d"), MemoryForm::kBetween);
  EXPECT_EQ(assess("e9 00 00 01 00 cc f9"), MemoryForm::kBetween);
  EXPECT_EQ(assess("e9 00 00 01 00 90 f9"), MemoryForm::kForeign);
  EXPECT_EQ(assess("e9 00 00 01 00 eb cc"), MemoryForm::kForeign);
  EXPECT_EQ(assess("e9 00 00 01 00 eb"), MemoryForm::kForeign);
  EXPECT_EQ(Assess(FakeSled(0x1000), Hex("cc 00 e9 f9 ff 00 00 00 02 00 00")), MemoryForm::kForeign)
      << "a sled never holds a trap";
}

}  // namespace
}  // namespace stackreel::patch
