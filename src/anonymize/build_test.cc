// The rules by which mappings of processes move, each by what a recording has in it and what comes
// out. Those of kernels are in build_kernel_test.cc.
#include "anonymize/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "anonymize/fake_recording.h"

namespace stackreel::anonymize {
namespace {

using fake::Read;
using fake::Recording;
using fake::SomeEvent;
using perfdata::Mmap;
using perfdata::Mmap2;

constexpr uint32_t kPid = 10;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kUserPseudonyms = 0x200000000000, kKernelPseudonyms = 0xffffa00000000000;
constexpr uint64_t kPseudonymSize = uint64_t{1} << 44;

uint64_t DeltaOf(const Mmap2& moved, uint64_t addr) { return moved.addr - addr; }

TEST(Remap, MovesEachModuleElsewhereAndItsSamplesWithIt) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x555500000000, 0x4000, 0x1000, "/bin/prog");
  in.Map(kPid, 0x7f0000000000, 0x8000, 0x2000, "/lib/libc.so");
  in.SampleAt(kPid, 0x555500000123);
  in.SampleAt(kPid, 0x7f0000001456);
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap2>();
  ASSERT_EQ(maps.size(), 2);
  ASSERT_EQ(out.samples.size(), 2);
  EXPECT_NE(maps[0].addr, 0x555500000000);
  EXPECT_NE(DeltaOf(maps[0], 0x555500000000), DeltaOf(maps[1], 0x7f0000000000));
  EXPECT_EQ(maps[0].pgoff, 0x1000);
  EXPECT_EQ(maps[1].pgoff, 0x2000);
  EXPECT_EQ(maps[0].addr % kPage, 0);
  EXPECT_EQ(out.samples[0].ip, maps[0].addr + 0x123);
  EXPECT_EQ(out.samples[1].ip, maps[1].addr + 0x1456);
}

TEST(Remap, TheSameKeyGivesTheSameBytesAndAnotherOtherAddresses) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x555500000000, 0x4000, 0, "/bin/prog");
  in.SampleAt(kPid, 0x123);
  const auto bytes = in.Finish();
  EXPECT_EQ(fake::AnonymizedBytes(bytes), fake::AnonymizedBytes(bytes));
  const Read a(fake::AnonymizedBytes(bytes));
  const Read b(fake::AnonymizedBytes(bytes, {}, Key::Random()));
  EXPECT_NE(a.All<Mmap2>()[0].addr, b.All<Mmap2>()[0].addr);
  EXPECT_NE(a.samples[0].ip, b.samples[0].ip);
}

TEST(Remap, NoAddressIsTakenForOneSeenBefore) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x555500000000, 0x4000, 0, "/bin/prog");
  constexpr uint16_t kGuestUser = 5;
  in.SampleAt(UINT32_MAX, 0x123, kGuestUser);
  in.SampleAt(kPid, 0);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_NE(out.samples[0].ip, 0x123);
  EXPECT_EQ(out.samples[1].ip, 0);
}

TEST(Remap, NeighboursStayNeighbours) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x4000, 0, "/lib/libc.so");
  in.Map(kPid, 0x7f0000006000, 0x1000, 0, "//anon");  // no neighbour of what came last, yet
  in.Map(kPid, 0x7f0000004000, 0x2000, 0x5000, "/lib/libc.so");
  in.Map(kPid, 0x7f0000009000, 0x1000, 0, "/lib/other.so");
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  ASSERT_EQ(maps.size(), 4);
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x6000);
  EXPECT_EQ(maps[2].addr, maps[0].addr + 0x4000);
  EXPECT_NE(maps[3].addr, maps[0].addr + 0x9000);
}

TEST(Remap, UnrelatedMappingsNeverBecomeAdjacent) {
  Recording in({SomeEvent(0)});
  for (uint64_t i = 0; i < 200; ++i) {
    in.Map(kPid, 0x7f0000000000 + i * 0x3000, 0x1000, 0, "/lib/" + std::to_string(i) + ".so");
  }
  std::vector<Span> placed;
  for (const Mmap2& map : fake::Anonymized(in.Finish()).All<Mmap2>()) {
    placed.push_back({map.addr, map.addr + map.len});
  }
  std::ranges::sort(placed);
  for (size_t i = 1; i < placed.size(); ++i) {
    EXPECT_GE(placed[i].start, placed[i - 1].end + kPage);
  }
}

// The span of a module is kept as a whole: text split by what was loaded between, .bss behind.
TEST(Remap, SegmentsOfAModuleKeepTheirOrderAndDistance) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x1000, 0, "/lib/split.so");
  in.Map(kPid, 0x7f0000400000, 0x1000, 0x3f0000, "/lib/split.so");  // another start - pgoff
  in.Map(kPid, 0x7f0000800000, 0x1000, 0x800000, "/lib/split.so");  // the first one's, far off
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x400000);
  EXPECT_EQ(maps[2].addr, maps[0].addr + 0x800000);
}

// The kernel or a reader may have split one mapping, farther than code reaches.
TEST(Remap, PartsOfOneMappingKeepTheirDistance) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x1000, 0, "/var/big.db");
  in.Map(kPid, 0x7f0200000000, 0x1000, 0x200000000, "/var/big.db");
  in.Map(kPid, 0x7f0400000000, 0x1000, 0, "/var/big.db");  // mapped once more
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x200000000);
  EXPECT_NE(maps[2].addr, maps[0].addr + 0x400000000);
}

// Whatever the place that another module would get: between the segments there may be more of it.
TEST(Remap, NothingComesToLieInTheSpanOfAModule) {
  constexpr uint64_t kFrom = 0x10000000, kDistance = 0x40000000;
  Recording in({SomeEvent(0)});
  in.Map(kPid, kFrom, kPage, 0, "/lib/far.so");
  in.Map(kPid, kFrom + kDistance, kPage, kDistance, "/lib/far.so");
  for (uint64_t i = 0; i < 100; ++i) {
    in.Map(kPid, 0x60000000 + i * 2 * kPage, kPage, 0, "/lib/" + std::to_string(i) + ".so");
  }
  const auto maps =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                   perfdata::EncodeString("armv7l", Endian::kLittle)}}))
          .All<Mmap2>();
  EXPECT_EQ(maps[1].addr, maps[0].addr + kDistance);
  for (size_t i = 2; i < maps.size(); ++i) {
    EXPECT_TRUE(maps[i].addr + kPage < maps[0].addr || maps[i].addr > maps[1].addr + kPage) << i;
  }
}

TEST(Remap, WhatCoversAnotherStillCoversIt) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x8000, 0, "/lib/old.so");
  in.Map(kPid, 0x7f0000002000, 0x2000, 0, "/lib/new.so");
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x2000);
}

// What ends farthest has the neighbour, whichever began last.
TEST(Remap, WhatCoversAnotherHasItsNeighbour) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x8000, 0, "/lib/old.so");
  in.Map(kPid, 0x7f0000002000, 0x2000, 0, "/lib/new.so");
  in.Map(kPid, 0x7f0000008000, 0x2000, 0, "/lib/behind.so");
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x2000);
  EXPECT_EQ(maps[2].addr, maps[0].addr + 0x8000);
}

TEST(Remap, TextOnHugePagesStaysOnThem) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000100000, 0x800000, 0, "/bin/big");
  in.Map(kPid, 0x7f0000400000, 0x200000, 0x7f0000400000, "//anon");
  in.Map(kPid, 0x7e0000400000, 0x200000, 0x7e0000400000, "//anon");  // only anonymous
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x300000);
  EXPECT_EQ(maps[1].addr % 0x200000, 0);
}

TEST(Remap, AForkedChildHasItsParentsPlacesUntilItCallsExec) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x8000, 0, "/lib/libc.so");
  in.Fork(kPid, 11);
  in.SampleAt(11, 0x7f0000000100);
  in.Map(11, 0x7f0000010000, 0x1000, 0, "/lib/plugin.so");
  in.Exec(11);
  in.SampleAt(11, 0x7f0000000200);  // still of the call
  in.Map(11, 0x7f0000000000, 0x8000, 0, "/lib/libc.so");
  in.SampleAt(11, 0x7f0000000300);
  in.SampleAt(kPid, 0x7f0000000400);
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap2>();
  ASSERT_EQ(maps.size(), 3);
  EXPECT_EQ(out.samples[0].ip, maps[0].addr + 0x100);
  EXPECT_EQ(out.samples[1].ip, maps[0].addr + 0x200);
  EXPECT_NE(maps[2].addr, maps[0].addr);
  EXPECT_EQ(out.samples[2].ip, maps[2].addr + 0x300);
  EXPECT_EQ(out.samples[3].ip, maps[0].addr + 0x400);
}

TEST(Remap, AProcessThatWasThereBeforeHasPlacesOfItsOwn) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x8000, 0, "/lib/libc.so");
  in.Fork(kPid, 11, perfdata::kMiscForkExec);
  in.Map(11, 0x7f0000001000, 0x8000, 0, "/lib/libc.so");
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_NE(maps[1].addr, maps[0].addr + 0x1000);
}

// perf says so of the threads of processes that were there before.
TEST(Remap, AThreadThatWasThereBeforeHasItsProcessesPlaces) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x8000, 0, "/lib/libc.so");
  in.Fork(kPid, kPid, perfdata::kMiscForkExec);
  in.SampleAt(kPid, 0x7f0000000100);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_EQ(out.samples[0].ip, out.All<Mmap2>()[0].addr + 0x100);
}

TEST(Remap, AnonymousMappingsHaveTheirNewAddressAsOffset) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x7f0000000000, 0x8000, 0x7f0000000000, "//anon");
  in.Map(kPid, 0x555500000000, 0x8000, 0x7f0000123000, "[heap]");  // moved there by mremap
  in.Map(kPid, 0x7fff00000000, 0x2000, 0, "[vdso]");
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_EQ(maps[0].pgoff, maps[0].addr);
  EXPECT_EQ(maps[1].pgoff, maps[1].addr);
  EXPECT_EQ(maps[2].pgoff, 0);
}

// Whoever maps the page at 0 (vm86, wine) has it moved like others; the address 0 is none.
TEST(Remap, AMappingAtZeroMovesWithItsAddresses) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0, 0x10000, 0, "/bin/dos");
  in.Map(kPid, 0x10000, 0x1000, 0x10000, "//anon");
  for (const uint64_t ip : {0x1234, 0x10010, 0}) in.SampleAt(kPid, ip);
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap2>();
  EXPECT_NE(maps[0].addr, 0);
  EXPECT_EQ(maps[1].addr, maps[0].addr + 0x10000);
  EXPECT_EQ(out.samples[0].ip, maps[0].addr + 0x1234);
  EXPECT_EQ(out.samples[1].ip, maps[1].addr + 0x10);
  EXPECT_EQ(out.samples[2].ip, 0);
}

// In 32 bits there are few: no two pages have one, and none was mapped.
TEST(Remap, PseudonymsAreOneForOneAndWereNotMapped) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x20000000, 0xe000000, 0, "/bin/huge");
  for (uint64_t i = 0; i < 1000; ++i) in.SampleAt(kPid, 0x70000123 + i * kPage);
  const Read out =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                   perfdata::EncodeString("armv7l", Endian::kLittle)}}));
  std::set<uint64_t> given;
  for (const perfdata::Sample& sample : out.samples) {
    EXPECT_GE(sample.ip, 0x2e000000);
    EXPECT_LT(sample.ip, 0x30000000);
    EXPECT_EQ(sample.ip % kPage, 0x123);
    EXPECT_TRUE(given.insert(sample.ip).second);
  }
}

// Where next to no pages are left for them, one in sixteen would be, by chance.
TEST(Remap, NoPageOutsideMappingsIsItsOwnPseudonym) {
  constexpr uint64_t kFirst = 0x2fff0000, kPages = 16;
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x8000, kPage, 0, "/bin/prog");  // which shows how large a page is
  in.Map(kPid, 0x20000000, kFirst - 0x20000000, 0, "/bin/huge");
  for (uint64_t i = 1; i <= kPages / 2; ++i) in.SampleAt(kPid, kFirst + i * kPage);
  const auto bytes = in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                 perfdata::EncodeString("armv7l", Endian::kLittle)}});
  for (int key = 0; key < 20; ++key) {
    const std::string secret = "a secret of 20 bytes, no. " + std::to_string(key);
    const Read out(fake::AnonymizedBytes(bytes, {}, *Key::FromSecret(AsBytes(secret))));
    for (uint64_t i = 1; i <= kPages / 2; ++i) {
      EXPECT_NE(out.samples[i - 1].ip, kFirst + i * kPage);
      EXPECT_GE(out.samples[i - 1].ip, kFirst);
    }
  }
}

// Five levels of page tables.
TEST(Remap, AProcessMayHaveMoreThan47Bits) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x10000000000000, uint64_t{1} << 50, 0, "/dev/shm/huge");
  const Mmap2 map = fake::Anonymized(in.Finish()).All<Mmap2>()[0];
  EXPECT_NE(map.addr, 0x10000000000000);
  EXPECT_EQ(map.len, uint64_t{1} << 50);
}

// Linear-address masking: programs keep a tag in bits 62 to 57.
TEST(Remap, TagsOfX86AreStripped) {
  constexpr uint64_t kHeap = 0x555500010000;
  Recording in({SomeEvent(perfdata::kSampleAddr)});
  in.Map(kPid, kHeap, kPage, kHeap, "[heap]", perfdata::kMiscMmapData | 2);
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.addr = (kHeap + 8) | uint64_t{0x15} << 57;
  in.AddSample(sample);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_EQ(out.samples[0].addr, out.All<Mmap2>()[0].addr + 8);
}

TEST(Remap, A32BitTaskStaysBelow4G) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x56555000, 0x4000, 0, "/bin/prog32");
  in.Map(kPid, 0xf7fc1000, 0x2000, 0, "[vdso]");
  in.Map(11, 0x7f0000000000, 0x4000, 0, "/bin/prog64");
  const auto maps = fake::Anonymized(in.Finish()).All<Mmap2>();
  EXPECT_LT(maps[0].addr, uint64_t{1} << 32);
  EXPECT_LT(maps[1].addr, uint64_t{1} << 32);
  EXPECT_GT(maps[2].addr, uint64_t{1} << 32);
}

TEST(Remap, AddressesOutsideAllMappingsBecomeStablePseudonyms) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x555500000000, 0x4000, 0, "/bin/prog");
  in.SampleAt(kPid, 0x7f0000001123);
  in.SampleAt(kPid, 0x7f0000001456);
  in.SampleAt(kPid, 0x7f0000002123);
  in.SampleAt(11, 0x7f0000001123);
  in.SampleAt(kPid, 0xffff888000001123, 1);
  in.SampleAt(kPid, 0);
  const Read out = fake::Anonymized(in.Finish());
  const auto& s = out.samples;
  EXPECT_GE(s[0].ip, kUserPseudonyms);
  EXPECT_LT(s[0].ip, kUserPseudonyms + kPseudonymSize);
  EXPECT_EQ(s[0].ip % kPage, 0x123);
  EXPECT_EQ(s[1].ip, s[0].ip - 0x123 + 0x456);
  EXPECT_NE(s[2].ip / kPage, s[0].ip / kPage);
  EXPECT_NE(s[3].ip / kPage, s[0].ip / kPage);
  EXPECT_GE(s[4].ip, kKernelPseudonyms);
  EXPECT_LT(s[4].ip, kKernelPseudonyms + kPseudonymSize);
  EXPECT_EQ(s[5].ip, 0);
}

TEST(Remap, AReturnAddressBehindTheLastCallMovesWithTheCall) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0x555500000000, 0x4000, 0, "/bin/prog");
  in.SampleAt(kPid, 0x555500004000);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_EQ(out.samples[0].ip, out.All<Mmap2>()[0].addr + 0x4000);
}

TEST(Remap, PagesOfDataArePermutedWithinTheirMapping) {
  Recording in({SomeEvent(perfdata::kSampleAddr)});
  constexpr uint64_t kHeap = 0x555500010000, kPages = 64, kLibc = 0x7f0000000000, kOfFile = 8;
  in.Map(kPid, kHeap, kPages * kPage, kHeap, "[heap]", perfdata::kMiscMmapData | 2);
  in.Map(kPid, kLibc, kOfFile * kPage, 0, "/lib/libc.so", perfdata::kMiscMmapData | 2);
  for (uint64_t i = 0; i < kPages + kOfFile; ++i) {
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.addr = i < kPages ? kHeap + i * kPage + 0x40 : kLibc + (i - kPages) * kPage + 8;
    in.AddSample(sample);
  }
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap2>();
  std::set<uint64_t> pages;
  uint64_t in_place = 0;
  for (uint64_t i = 0; i < kPages; ++i) {
    const uint64_t offset = out.samples[i].addr - maps[0].addr;
    EXPECT_LT(offset, kPages * kPage);
    EXPECT_EQ(offset % kPage, 0x40);
    pages.insert(offset / kPage);
    in_place += offset / kPage == i ? 1 : 0;
  }
  EXPECT_EQ(pages.size(), kPages);
  EXPECT_LT(in_place, 8);
  // Those of a file tell where in it they are.
  for (uint64_t i = 0; i < kOfFile; ++i) {
    EXPECT_EQ(out.samples[kPages + i].addr, maps[1].addr + i * kPage + 8);
  }
}

TEST(Remap, PagesAreAsLargeAsTheRecordedMachines) {
  Recording in({SomeEvent(0)});
  in.Map(kPid, 0xaaaa00010000, 0x20000, 0, "/bin/prog");
  in.Map(kPid, 0xffff00040000, 0x10000, 0x30000, "/lib/libc.so");
  in.SampleAt(kPid, 0xffff12345678);
  const Read out =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                   perfdata::EncodeString("aarch64", Endian::kLittle)}}));
  for (const Mmap2& map : out.All<Mmap2>()) EXPECT_EQ(map.addr % 0x10000, 0);
  EXPECT_EQ(out.samples[0].ip % 0x10000, 0x5678);
}

// Readers tell by the highest mapping which bits are a signature's: they stay those bits, and
// taking them away spoils no address.
TEST(Remap, AddressesOfArm64NeedAsManyBitsAsBefore) {
  for (const unsigned bits : {39U, 48U}) {
    const uint64_t end = uint64_t{1} << bits, kernel = (~uint64_t{0} << (bits - 1)) + 0x8000000;
    Recording in({SomeEvent(0)});
    in.Map(kPid, end - 0x20000, 0x10000, 0, "/lib/libc.so");
    in.MapKernel(kernel, 0x1000000, kernel, "[kernel.kallsyms]_text");
    in.SampleAt(kPid, 0x1234567);
    in.SampleAt(kPid, kernel - 0x1000, 1);
    const fake::Bytes bytes = in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                          perfdata::EncodeString("aarch64", Endian::kLittle)}});
    for (const std::string_view secret : {"secret number one.", "secret number two.",
                                          "secret number three", "secret number four"}) {
      const Read out(fake::AnonymizedBytes(bytes, {}, *Key::FromSecret(AsBytes(secret))));
      EXPECT_EQ(std::bit_width(out.All<Mmap2>()[0].addr), bits);
      const uint64_t above = ~uint64_t{0} << bits;
      EXPECT_EQ(out.All<Mmap>()[0].addr & above, above);
      EXPECT_EQ(out.samples[0].ip & above, 0);
      EXPECT_EQ(out.samples[1].ip & above, above);
    }
  }
}

// Pointer authentication and tags: what is signed is the address that it signs.
TEST(Remap, SignaturesAndTagsAreStripped) {
  constexpr uint64_t kText = 0xaaaa00010000, kHeap = 0xaaaa10000000;
  constexpr uint64_t kSignature = 0x0035000000000000, kTag = 0x0b00000000000000;
  constexpr uint64_t kKernel = 0xffff800008000000;
  Recording in({SomeEvent(perfdata::kSampleCallchain | perfdata::kSampleAddr)});
  in.Map(kPid, kText, 0x20000, 0, "/bin/prog");
  constexpr uint64_t kLargePage = 65536;  // as the places tell
  in.Map(kPid, kHeap, 64 * kLargePage, kHeap, "[heap]", perfdata::kMiscMmapData | 2);
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
  std::vector<uint8_t> words(32);
  uint8_t* word = words.data();
  for (const uint64_t entry : {perfdata::kContextKernel, (kKernel | kTag) ^ kSignature ^ 0x10,
                               perfdata::kContextUser, (kText + 0x20) | kSignature}) {
    StoreUnaligned(word, entry, Endian::kLittle);
    word += 8;
  }
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = kText + 4;
  sample.callchain = perfdata::U64Array(words, Endian::kLittle);
  for (const uint64_t page : {0, 1, 2, 3}) {
    for (const uint64_t tag : {kTag, uint64_t{0}}) {
      sample.addr = (kHeap + page * kLargePage + 8) | tag;
      in.AddSample(sample);
    }
  }
  const Read out =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                   perfdata::EncodeString("aarch64", Endian::kLittle)}}));
  const auto maps = out.All<Mmap2>();
  const perfdata::Sample& moved = out.samples.at(0);
  EXPECT_EQ(moved.ip, maps[0].addr + 4);
  for (size_t i = 0; i < 8; i += 2) {  // one page of those that are permuted
    EXPECT_EQ(out.samples.at(i).addr, out.samples.at(i + 1).addr);
    EXPECT_EQ(out.samples.at(i).addr % kLargePage, 8);
  }
  EXPECT_EQ(moved.callchain[1], out.All<Mmap>()[0].addr + 0x10);
  EXPECT_EQ(moved.callchain[3], maps[0].addr + 0x20);
}

}  // namespace
}  // namespace stackreel::anonymize
