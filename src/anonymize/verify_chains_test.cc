// Verification kind (f) of recorded chains: that places of pages are remembered no longer than they
// are true.
#include "anonymize/verify_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "anonymize/fake_leaks.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

constexpr uint64_t kFrom = 0x7f0000a00000, kTo = 0x234567890000, kElsewhere = 0x334567890000;
constexpr uint64_t kSize = 0x4000;

// One of two recordings, where `base` is what the other has at another base.
class Half {
 public:
  explicit Half(uint64_t at)
      : base(at), recording({SomeEvent(perfdata::kSampleCallchain | perfdata::kSamplePeriod)}) {}
  // What is mapped, and sampled, at an offset from the base.
  void Map(uint32_t pid, uint64_t offset, uint64_t len, uint64_t pgoff, const std::string& name) {
    recording.Map(pid, base + offset, len, pgoff, name);
  }
  // The innermost frame, and a return address one byte behind it.
  void Sample(uint32_t pid, uint64_t offset) { SampleAt(pid, base + offset); }
  void SampleAt(uint32_t pid, uint64_t address) {
    Bytes chain;
    for (const uint64_t entry : {perfdata::kContextUser, address, address + 1}) {
      for (int i = 0; i < 64; i += 8) chain.push_back(static_cast<uint8_t>(entry >> i));
    }
    perfdata::Sample sample;
    sample.pid = sample.tid = pid;
    sample.ip = address;
    sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
    recording.AddSample(sample);
  }

  uint64_t base;
  Recording recording;
};

using Build = std::function<void(Half&, bool is_out)>;
std::vector<std::string> DifferencesOf(const Build& build) {
  Half in(kFrom), out(kTo);
  build(in, false);
  build(out, true);
  const auto verdict = VerifyBytes(in.recording.Finish(), out.recording.Finish());
  EXPECT_TRUE(verdict);
  std::vector<std::string> found;
  for (const Finding& finding : verdict->findings) {
    EXPECT_EQ(finding.kind, FindingKind::kDifference) << TextOf(*verdict);
    EXPECT_EQ(finding.field, "callchain");
    found.push_back(finding.value);
  }
  return found;
}

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(ChainCheck, FramesAtOtherPlacesAreFound) {
  const auto sampled_at = [](uint64_t more) {
    return DifferencesOf([more](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0x1000, "/lib/a.so");
      half.Sample(kPid, 0x123);
      half.Sample(kPid, 0x123 + (is_out ? more : 0));
      half.Sample(kPid, 0x456);
    });
  };
  EXPECT_THAT(sampled_at(0), IsEmpty());
  EXPECT_THAT(sampled_at(1), ElementsAre(HasSubstr("a.so+0x1124, in IN /lib/a.so+0x1123")));
  EXPECT_THAT(sampled_at(0x1000), ElementsAre(HasSubstr("a.so+0x2123, in IN /lib/a.so+0x1123")));
}

TEST(ChainCheck, AnotherNumberOfFramesIsFound) {
  EXPECT_THAT(DifferencesOf([](Half& half, bool is_out) {
                half.Map(kPid, 0, kSize, 0, "/lib/a.so");
                half.Sample(kPid, 0x123);
                perfdata::Sample sample;
                sample.pid = sample.tid = kPid;
                sample.ip = half.base;
                Bytes chain;
                for (int i = 0; i < 64; i += 8) {
                  chain.push_back(static_cast<uint8_t>((half.base + 0x10) >> i));
                }
                if (!is_out) chain.insert(chain.end(), chain.begin(), chain.begin() + 8);
                sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
                half.recording.AddSample(sample);
              }),
              ElementsAre("1 frames, 2 in IN"));
}

// Another file is mapped where one was: in OUT it lies elsewhere, but the sample is where it was.
TEST(ChainCheck, AMappingOverAnotherIsSeen) {
  const auto found = [](bool follows) {
    return DifferencesOf([follows](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0, "/lib/a.so");
      half.Sample(kPid, 0x1123);
      const uint64_t base = is_out ? kElsewhere : kFrom;
      half.recording.Map(kPid, base, kSize, 0, "/lib/b.so");
      half.SampleAt(kPid, (follows ? base : half.base) + 0x1123);
    });
  };
  EXPECT_THAT(found(true), IsEmpty());
  EXPECT_THAT(found(false), ElementsAre(HasSubstr("a.so+0x1123, in IN /lib/b.so+0x1123")));
}

// A mapping that covers a page of another takes that page away (munmap is not recorded), and no
// more than it.
TEST(ChainCheck, AMappingOverAPartOfAnotherIsSeen) {
  const auto found = [](uint64_t covered_in_out) {
    return DifferencesOf([covered_in_out](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0, "/lib/a.so");
      for (const uint64_t offset : {0x0123, 0x1123, 0x2123}) half.Sample(kPid, offset);
      half.Map(kPid, is_out ? covered_in_out : 0x1000, 0x1000, 0, "/lib/b.so");
      for (const uint64_t offset : {0x0123, 0x1123, 0x2123}) half.Sample(kPid, offset);
    });
  };
  EXPECT_THAT(found(0x1000), IsEmpty());
  EXPECT_THAT(found(0x2000), ElementsAre(HasSubstr("a.so+0x1123, in IN /lib/b.so+0x123"),
                                         HasSubstr("b.so+0x123, in IN /lib/a.so+0x2123")));
}

// The same page, of which only a part is covered: what is said of one address is not of another.
TEST(ChainCheck, APageThatTwoMappingsShareIsNotRemembered) {
  const auto found = [](uint64_t covered_in_out) {
    return DifferencesOf([covered_in_out](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0, "/lib/a.so");
      half.Map(kPid, is_out ? covered_in_out : 0x1800, 0x100, 0, "/lib/b.so");
      for (const uint64_t offset : {0x1123, 0x1850, 0x1950}) half.Sample(kPid, offset);
    });
  };
  EXPECT_THAT(found(0x1800), IsEmpty());
  EXPECT_EQ(found(0x1900).size(), 2u);
}

TEST(ChainCheck, ExecIsSeen) {
  const auto found = [](bool maps_again) {
    return DifferencesOf([maps_again](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0, "/bin/a");
      half.Sample(kPid, 0x123);
      half.recording.Exec(kPid);
      half.Sample(kPid, 0x123);  // until the new program is mapped
      const bool elsewhere = is_out && !maps_again;
      half.recording.Map(kPid, elsewhere ? kElsewhere : half.base, kSize, 0, "/bin/a");
      half.Sample(kPid, 0x123);
    });
  };
  EXPECT_THAT(found(true), IsEmpty());
  EXPECT_THAT(found(false), ElementsAre(HasSubstr("nowhere+0x123, in IN /bin/a+0x123")));
}

TEST(ChainCheck, AForkedChildHasItsParentsPlacesUntilItMapsItsOwn) {
  constexpr uint32_t kChild = 11;
  const auto found = [](bool child_maps, bool child_is_forked) {
    return DifferencesOf([&](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0, "/lib/a.so");
      half.Sample(kPid, 0x123);
      half.recording.Fork(child_is_forked || !is_out ? kPid : 99, kChild);
      half.Sample(kChild, 0x123);
      half.Map(child_maps || !is_out ? kChild : kPid, 0, kSize, 0, "/lib/b.so");
      half.Sample(kPid, 0x123);
      half.Sample(kChild, 0x123);
    });
  };
  EXPECT_THAT(found(true, true), IsEmpty());
  EXPECT_THAT(found(false, true), ElementsAre(HasSubstr("b.so+0x123, in IN /lib/a.so+0x123"),
                                              HasSubstr("a.so+0x123, in IN /lib/b.so+0x123")));
  EXPECT_THAT(found(true, false), ElementsAre(HasSubstr("nowhere+0x123, in IN /lib/a.so+0x123")));
}

// What is the same is looked up once for each page.
TEST(ChainCheck, PagesAreLookedUpOnce) {
  Half in(kFrom), out(kTo);
  for (Half* half : {&in, &out}) half->Map(kPid, 0, kSize, 0, "/lib/a.so");
  const Bytes in_bytes = in.recording.Finish(), out_bytes = out.recording.Finish();
  MemorySource in_source(in_bytes), out_source(out_bytes);
  const auto in_reader = *perfdata::Reader::Open(in_source);
  const auto out_reader = *perfdata::Reader::Open(out_source);
  ChainCheck check(*in_reader, *out_reader, Level::kAddresses);
  perfdata::RawRecord raw;
  const perfdata::Reader* reader = in_reader.get();
  while (*in_reader->Next(raw))
    check.ApplyIn({raw, 0, reader->events().IndexOf(raw, reader->endian())});
  while (*out_reader->Next(raw)) check.ApplyOut({raw, 0, 0});
  for (uint64_t i = 0; i < 10000; ++i) {
    const auto sampled = [&](uint64_t base) {
      ChainedSample sample;
      sample.mode = perfdata::CpuMode::kUser;
      sample.pid = sample.tid = kPid;
      sample.ip = base + (i % kSize);
      return sample;
    };
    EXPECT_EQ(check.Difference(sampled(kFrom), sampled(kTo)), std::nullopt);
  }
  EXPECT_EQ(check.lookups(), 3);  // 10,000 bytes
}

// Of pages that share a place in the table, the one that was looked up may be of an older space.
TEST(ChainCheck, APageOfAnOlderSpaceIsNotTakenForOneOfThis) {
  constexpr int kTimes = 2100;  // the table has 2048 places
  Half in(kFrom), out(kTo);
  for (Half* half : {&in, &out}) half->Map(kPid, 0, kSize, 0, "/lib/a.so");
  for (int i = 0; i < kTimes; ++i) {
    in.Map(kPid, 0, kSize, 0, i % 2 == 0 ? "/lib/b.so" : "/lib/c.so");
  }
  const Bytes in_bytes = in.recording.Finish(), out_bytes = out.recording.Finish();
  MemorySource in_source(in_bytes), out_source(out_bytes);
  const auto in_reader = *perfdata::Reader::Open(in_source);
  const auto out_reader = *perfdata::Reader::Open(out_source);
  ChainCheck check(*in_reader, *out_reader, Level::kAddresses);
  const auto sampled = [](uint64_t base) {
    ChainedSample sample;
    sample.mode = perfdata::CpuMode::kUser;
    sample.pid = sample.tid = kPid;
    sample.ip = base + 0x123;
    return sample;
  };
  perfdata::RawRecord raw;
  while (*out_reader->Next(raw)) check.ApplyOut({raw, 0, 0});
  int maps = 0;
  while (*in_reader->Next(raw)) {
    if (raw.record_type() != RecordType::kMmap2) continue;
    check.ApplyIn({raw, 0, 0});
    const bool is_same = maps++ == 0;
    EXPECT_EQ(!check.Difference(sampled(kFrom), sampled(kTo)), is_same) << maps;
  }
  EXPECT_EQ(maps, kTimes + 1);
}

// What chains end with as the last ones did is passed over, as long as the same lies there, and
// only behind the first frame of its mode.
class ChainTailCheck : public testing::Test {
 protected:
  static void Sample(Half& half, std::initializer_list<uint64_t> entries) {
    Bytes chain;
    for (const uint64_t entry : entries) {
      const uint64_t value = entry < kSize * 4 ? half.base + entry : entry;
      for (int i = 0; i < 64; i += 8) chain.push_back(static_cast<uint8_t>(value >> i));
    }
    perfdata::Sample sample;
    sample.pid = sample.tid = kPid;
    sample.ip = half.base;
    sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
    half.recording.AddSample(sample);
  }
};

TEST_F(ChainTailCheck, AFrameAtAnotherPlaceIsFoundInEveryPlaceOfTheChain) {
  constexpr uint64_t kUser = perfdata::kContextUser;
  for (size_t i = 1; i < 5; ++i) {
    EXPECT_THAT(DifferencesOf([i](Half& half, bool is_out) {
                  half.Map(kPid, 0, kSize, 0, "/lib/a.so");
                  Sample(half, {kUser, 0x10, 0x20, 0x30, 0x40});
                  const auto at = [&](size_t n) { return 0x10 * n + (is_out && n == i ? 1 : 0); };
                  Sample(half, {kUser, at(1), at(2), at(3), at(4)});
                  Sample(half, {kUser, 0x11, 0x20, 0x30, 0x40});
                }),
                ElementsAre(HasSubstr("/lib/a.so")))
        << i;
  }
}

// The address just behind a mapping is a return address in it, and no instruction's.
TEST_F(ChainTailCheck, TheFirstFrameIsNoReturnAddress) {
  constexpr uint64_t kUser = perfdata::kContextUser;
  EXPECT_THAT(DifferencesOf([](Half& half, bool is_out) {
                half.Map(kPid, 0, kSize, 0, "/lib/a.so");
                half.recording.Map(kPid, (is_out ? kElsewhere : kFrom) + kSize, kSize, 0,
                                   "/lib/b.so");
                Sample(half, {kUser, 0x10, kSize});
                Sample(half, {kUser, kSize});
              }),
              ElementsAre(HasSubstr("frame 0 is nowhere+0x0, in IN /lib/b.so+0x0")));
}

TEST_F(ChainTailCheck, WhatWasTheFirstFrameIsLookedAtAsAReturnAddress) {
  EXPECT_THAT(DifferencesOf([](Half& half, bool is_out) {
                half.Map(kPid, 0, kSize, 0, "/lib/a.so");
                half.Map(kPid, kSize - 0x1000, 0x1000, 0, is_out ? "/lib/d.so" : "/lib/c.so");
                half.Map(kPid, kSize, kSize, 0, "/lib/b.so");
                Sample(half, {kSize});
                Sample(half, {0x10, kSize});
              }),
              ElementsAre(HasSubstr("frame 1 is /lib/d.so+0x1000, in IN /lib/c.so+0x1000")));
}

TEST_F(ChainTailCheck, WhatIsMappedSinceInOneOfTheTwoIsSeen) {
  constexpr uint64_t kUser = perfdata::kContextUser;
  constexpr uint32_t kOther = 11;
  const auto found = [](bool in_maps) {
    return DifferencesOf([in_maps](Half& half, bool is_out) {
      half.Map(kPid, 0, kSize, 0, "/lib/a.so");
      Sample(half, {kUser, 0x10, 0x1020, 0x1030});
      half.Map(is_out != in_maps ? kPid : kOther, 0x1000, 0x1000, 0, "/lib/c.so");
      Sample(half, {kUser, 0x10, 0x1020, 0x1030});
    });
  };
  EXPECT_THAT(found(true),
              ElementsAre(HasSubstr("frame 1 is /lib/a.so+0x1020, in IN /lib/c.so+0x20")));
  EXPECT_THAT(found(false),
              ElementsAre(HasSubstr("frame 1 is /lib/c.so+0x20, in IN /lib/a.so+0x1020")));
}

TEST_F(ChainTailCheck, WhatIsMappedSinceIsSeen) {
  constexpr uint64_t kUser = perfdata::kContextUser;
  EXPECT_THAT(DifferencesOf([](Half& half, bool is_out) {
                half.Map(kPid, 0, kSize, 0, "/lib/a.so");
                Sample(half, {kUser, 0x10, 0x1020, 0x1030});
                half.Map(kPid, 0x1000, 0x1000, 0, is_out ? "/lib/b.so" : "/lib/c.so");
                Sample(half, {kUser, 0x10, 0x1020, 0x1030});
              }),
              ElementsAre(HasSubstr("frame 1 is /lib/b.so+0x20, in IN /lib/c.so+0x20")));
}

}  // namespace
}  // namespace stackreel::anonymize
