// Verification as a whole: marks, counts, and kind (f), what is not as in the original.
#include "anonymize/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify_samples.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

class VerifyEachTest : public VerifyEach {};
INSTANTIATE_TEST_SUITE_P(All, VerifyEachTest, kEach);

TEST_P(VerifyEachTest, WhatMovedIsClean) {
  const Verdict verdict = Of({});
  EXPECT_TRUE(verdict.clean()) << TextOf(verdict);
  EXPECT_EQ(verdict.samples, 3);
  EXPECT_EQ(verdict.mappings, 6);
  EXPECT_GT(verdict.bytes, 500);
}

TEST_P(VerifyEachTest, WhatDidNotMoveIsFound) {
  const Bytes in = Make({}, options());
  const auto verdict = VerifyBytes(in, in);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(Has(*verdict, FindingKind::kOriginalValue, "MMAP", "addr"));
  EXPECT_TRUE(Has(*verdict, FindingKind::kOriginalValue, "SAMPLE", "ip"));
}

// Each kind of mapping left where it was.
TEST_P(VerifyEachTest, OneMappingThatStaysIsFound) {
  for (uint64_t Places::* place :
       {&Places::text, &Places::libc, &Places::heap, &Places::kernel, &Places::module}) {
    Places some = kMoved;
    some.*place = Places().*place;
    const auto verdict = VerifyBytes(Make({}, options()), Make(some, options()));
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(Has(*verdict, FindingKind::kOriginalValue, "MMAP", "addr")) << TextOf(*verdict);
  }
}

// (g): what was anonymised may be again, and holds nothing of either.
TEST_P(VerifyEachTest, WhatIsAnonymisedTwiceIsClean) {
  const Bytes in = Everything(options());
  Options anonymize;
  anonymize.container = options().container;
  const Bytes once = fake::AnonymizedBytes(in, anonymize);
  const Bytes twice = fake::AnonymizedBytes(once, anonymize);
  for (const auto& [before, after] :
       {std::pair(&in, &once), std::pair(&once, &twice), std::pair(&in, &twice)}) {
    const auto verdict = VerifyBytes(*before, *after);
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(verdict->clean()) << TextOf(*verdict);
  }
}

// Whoever verifies need not know how OUT was made.
TEST_P(VerifyEachTest, TheMarkOfOutSaysWhatItIsToHide) {
  const auto of = [&](std::optional<uint32_t> mark, std::optional<Level> asked,
                      bool must_be_marked = false) {
    Leak leak;
    if (mark) {
      leak.features[static_cast<uint32_t>(Feature::kStackreelAnonymized)] =
          perfdata::EncodeFeature(perfdata::AnonymizedMark{1, *mark}, endian());
    }
    VerifyOptions verify;
    verify.level = asked;
    verify.must_be_marked = must_be_marked;
    return Of(leak, {}, verify);
  };
  EXPECT_TRUE(of({}, {}).clean());
  EXPECT_EQ(of({}, {}).mark, std::nullopt);
  EXPECT_TRUE(of(0, {}).clean());
  const Verdict marked = of(1, {});  // the host's name is there
  EXPECT_EQ(marked.level, Level::kIdentity);
  EXPECT_EQ(marked.mark, Level::kIdentity);
  for (const FindingGroup& group : marked.groups) EXPECT_EQ(group.first.kind, FindingKind::kText);
  EXPECT_TRUE(std::ranges::any_of(marked.findings,
                                  [](const Finding& f) { return f.value == "\"sekrithost\""; }));
  EXPECT_FALSE(of(0, Level::kIdentity).clean());
  EXPECT_FALSE(of(2, Level::kAddresses).clean());
  EXPECT_TRUE(of(0, Level::kAddresses, true).clean());
  EXPECT_TRUE(Has(of({}, Level::kAddresses, true), FindingKind::kDifference,
                  "feature STACKREEL_ANONYMIZED", "level"));
}

TEST(Verify, OfAMarkOfAnUnknownLevelNothingIsSaid) {
  Leak leak;
  leak.features[static_cast<uint32_t>(Feature::kStackreelAnonymized)] =
      perfdata::EncodeFeature(perfdata::AnonymizedMark{1, 3}, Endian::kLittle);
  const auto verdict = VerifyBytes(Make({}, {}), Make(kMoved, {}, leak));
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().kind, ErrorKind::kUnsupported);
}

TEST_P(VerifyEachTest, FindingsAreCountedByField) {
  const Bytes in = Make({}, options());
  const auto verdict = VerifyBytes(in, in);
  ASSERT_TRUE(verdict);
  uint64_t count = 0;
  std::set<std::tuple<FindingKind, std::string, std::string>> fields;
  for (const FindingGroup& group : verdict->groups) {
    count += group.count;
    fields.emplace(group.first.kind, group.first.record, group.first.field);
  }
  EXPECT_EQ(count, verdict->found);
  EXPECT_EQ(fields.size(), verdict->groups.size());
  EXPECT_EQ(verdict->groups.front().first.kind, FindingKind::kOriginalValue);
}

TEST_P(VerifyEachTest, OtherSamplesAreFound) {
  const auto differs = [&](const Leak& leak) {
    const Verdict verdict = Of(leak);
    return std::ranges::any_of(verdict.findings, [](const Finding& f) {
      return f.kind == FindingKind::kDifference && f.record == "SAMPLE" && f.file_offset != 0;
    });
  };
  EXPECT_TRUE(differs({.sample = [](perfdata::Sample& s) { s.period += s.period == 1002; }}));
  EXPECT_TRUE(differs({.more = [](Recording& r) { r.SampleAt(kPid, kMoved.text); }}));
  const auto missing = VerifyBytes(
      Make({}, options(), {.more = [](Recording& r) { r.SampleAt(kPid, Places().text); }}),
      Make(kMoved, options()));
  ASSERT_TRUE(missing);
  EXPECT_TRUE(Has(*missing, FindingKind::kDifference, "SAMPLE", "")) << TextOf(*missing);
}

TEST_P(VerifyEachTest, OtherMappingsAndRecordsAreFound) {
  const Leak map = {.more = [](Recording& r) { r.Map(kPid, kMoved.text + 0x9000, 1, 0, "/x"); }};
  EXPECT_TRUE(Has(Of(map), FindingKind::kDifference, "MMAP", ""));
  const auto mapped = [](uint64_t addr, uint64_t len, uint64_t pgoff) {
    return Leak{.more = [=](Recording& r) { r.Map(kPid, addr, len, pgoff, "//anon"); }};
  };
  constexpr uint64_t kWas = 0x7e0000000000, kIs = 0x345600000000;
  const Leak in = mapped(kWas, 0x4000, kWas);
  EXPECT_TRUE(Of(mapped(kIs, 0x4000, kIs), in).clean());
  EXPECT_TRUE(Has(Of(mapped(kIs, 0x5000, kIs), in), FindingKind::kDifference, "MMAP", "len"));
  EXPECT_TRUE(Has(Of(mapped(kIs, 0x4000, 0x777700000000), in), FindingKind::kAddressOutside, "MMAP",
                  "pgoff"));
  const Leak comm = {.more = [](Recording& r) { r.Exec(kPid); }};
  EXPECT_TRUE(Has(Of(comm), FindingKind::kDifference, "COMM", ""));
  EXPECT_TRUE(Of(comm, comm).clean());
}

TEST(Verify, FramesAreComparedOneByOne) {
  class Frames : public ComparedSamples {
   public:
    explicit Frames(std::vector<ComparedSample> samples) : samples_(std::move(samples)) {}
    Result<bool> Next(ComparedSample& sample) override {
      if (next_ == samples_.size()) return false;
      sample = samples_[next_++];
      return true;
    }

   private:
    std::vector<ComparedSample> samples_;
    size_t next_ = 0;
  };
  const auto of = [](const ComparedFrame& frame) {
    return std::vector<ComparedSample>(3, {0, 0, 0, {frame, {"libc", 5, ""}}});
  };
  const auto found = [](Level level, std::vector<ComparedSample> before,
                        std::vector<ComparedSample> after) {
    Frames in(std::move(before)), out(std::move(after));
    std::vector<uint64_t> numbers;
    EXPECT_TRUE(CompareFrames(in, out, level,
                              [&](uint64_t n, const std::string&) { numbers.push_back(n); }));
    return numbers;
  };
  using testing::ElementsAre;
  using testing::IsEmpty;
  const ComparedFrame frame = {"prog", 0x10, "main"};
  EXPECT_THAT(found(Level::kAddresses, of(frame), of(frame)), IsEmpty());
  EXPECT_THAT(found(Level::kAddresses, of(frame), of({"prog", 0x11, "main"})),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(found(Level::kAddresses, of(frame), of({"prog", 0x10, "other"})),
              ElementsAre(0, 1, 2));
  EXPECT_THAT(found(Level::kAddresses, of(frame), of({"gorp", 0x10, "main"})),
              ElementsAre(0, 1, 2));
  // Another name, but the same for the same; not one that is another's.
  EXPECT_THAT(found(Level::kIdentity, of(frame), of({"gorp", 0x10, "main"})), IsEmpty());
  EXPECT_THAT(found(Level::kIdentity, of(frame), of({"libc", 0x10, "main"})), ElementsAre(0, 1, 2));
  auto fewer = of(frame);
  fewer[1].frames.pop_back();
  EXPECT_THAT(found(Level::kAddresses, of(frame), fewer), ElementsAre(1));
  fewer.pop_back();
  EXPECT_THAT(found(Level::kAddresses, of(frame), fewer), ElementsAre(1, 2));
}

TEST(Verify, OfADamagedRecordingNothingIsSaid) {
  Bytes in = Make({}, {});
  const Bytes out = Make(kMoved, {});
  Bytes cut = out;
  cut.resize(cut.size() / 2);
  EXPECT_FALSE(VerifyBytes(in, cut));
  in.resize(in.size() / 2);
  EXPECT_FALSE(VerifyBytes(in, out));
}

}  // namespace
}  // namespace stackreel::anonymize
