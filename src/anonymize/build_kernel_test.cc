// The rules by which kernels and what they load move, and which half of addresses is theirs: each
// by what a recording has in it and what comes out.
#include <gtest/gtest.h>

#include "anonymize/build.h"
#include "anonymize/fake_recording.h"

namespace stackreel::anonymize {
namespace {

using fake::Read;
using fake::Recording;
using fake::SomeEvent;
using perfdata::Mmap;
using perfdata::Mmap2;
using perfdata::RecordType;

constexpr uint32_t kPid = 10;
constexpr uint64_t kUserPseudonyms = 0x200000000000, kKernelPseudonyms = 0xffffa00000000000;
constexpr uint64_t kPseudonymSize = uint64_t{1} << 44;

TEST(Remap, TheKernelMovesWithItsSymbol) {
  Recording in({SomeEvent(0)});
  in.MapKernel(0xffffffff9a000000, 0x1000000, 0xffffffff9a000080, "[kernel.kallsyms]_stext");
  in.MapKernel(0xffffffffc0200000, 0x6000, 0, "[ext4]");
  in.SampleAt(kPid, 0xffffffff9a000123, 1);
  in.SampleAt(kPid, 0xffffffffc0200456, 1);
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap>();
  ASSERT_EQ(maps.size(), 2);
  EXPECT_EQ(maps[0].len, 0x1000000);
  EXPECT_EQ(maps[0].pgoff, maps[0].addr + 0x80);
  EXPECT_GE(maps[0].addr, 0xffff800000000000);
  EXPECT_NE(maps[0].addr - 0xffffffff9a000000, maps[1].addr - 0xffffffffc0200000);
  EXPECT_EQ(maps[1].pgoff, 0);
  EXPECT_EQ(out.samples[0].ip, maps[0].addr + 0x123);
  EXPECT_EQ(out.samples[1].ip, maps[1].addr + 0x456);
}

// Old perf did not know where the kernel begins or ends.
TEST(Remap, AKernelThatIsToldTooLargeIsCut) {
  Recording in({SomeEvent(0)});
  in.MapKernel(0, 0xffffffff9fffffff, 0xffffffff81000190, "[kernel.kallsyms]_stext");
  in.SampleAt(kPid, 0xffffffff81000200, 1);
  const Read out = fake::Anonymized(in.Finish());
  const Mmap map = out.All<Mmap>()[0];
  EXPECT_GE(map.addr, 0xffff800000000000);
  EXPECT_EQ(map.pgoff, map.addr + 0x190);
  EXPECT_EQ(map.len, 0xffffffff9fffffff - 0xffffffff81000000);
  EXPECT_EQ(out.samples[0].ip, map.addr + 0x200);
}

TEST(Remap, OfAKernelThatReachesToTheEndThereIsOnlyAnImage) {
  Recording in({SomeEvent(0)});
  constexpr uint64_t kStart = 0xffff800010000000;
  in.MapKernel(kStart, 0x7fffeffff000, kStart, "[kernel.kallsyms]_text");
  EXPECT_EQ(fake::Anonymized(in.Finish()).All<Mmap>()[0].len, uint64_t{4} << 30);
}

// Else it might lie behind its kernel in the output, which then is none.
TEST(Remap, ASymbolOutsideItsKernelBecomesItsStart) {
  Recording in({SomeEvent(0)});
  in.MapKernel(0xfffffffff1000000, 0x4000, 0xffffffff81000000, "[kernel.kallsyms]_text");
  in.SampleAt(kPid, 0xfffffffff1000123, 1);
  const Mmap map = fake::Anonymized(in.Finish()).All<Mmap>()[0];
  EXPECT_EQ(map.len, 0x4000);
  EXPECT_EQ(map.pgoff, map.addr);
}

// Of a module pgoff is an offset in its file.
TEST(Remap, AModulesOffsetStays) {
  Recording in({SomeEvent(0)});
  in.MapKernel(0xffffffffc0200000, 0x6000, 0x1000, "[ext4]");
  EXPECT_EQ(fake::Anonymized(in.Finish()).All<Mmap>()[0].pgoff, 0x1000);
}

TEST(Remap, AKernelOfWhichNothingIsKnownStaysSo) {
  Recording in({SomeEvent(0)});
  in.MapKernel(0, 0xffffffff9fffffff, 0, "[kernel.kallsyms]");
  in.SampleAt(kPid, 0xffffffff81000200, 1);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_EQ(out.All<Mmap>()[0].addr, 0);
  EXPECT_EQ(out.All<Mmap>()[0].len, ~uint64_t{0} - 4095);
  EXPECT_GE(out.samples[0].ip, kKernelPseudonyms);
}

TEST(Remap, A32BitMachineKeepsItsHalves) {
  Recording in({SomeEvent(0)});
  in.MapKernel(0xc0008200, 0xffffffff3fff7dff, 0xc0008200, "[kernel.kallsyms]_stext");
  in.Map(kPid, 0x8000, 0x4000, 0, "/bin/prog");
  in.SampleAt(kPid, 0xc0009000, 1);
  in.SampleAt(kPid, 0x8100);
  in.SampleAt(kPid, 0x70000000);
  const Read out =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                   perfdata::EncodeString("armv7l", Endian::kLittle)}}));
  EXPECT_GE(out.All<Mmap>()[0].addr, 0xc0000000);
  EXPECT_LE(out.All<Mmap>()[0].addr + out.All<Mmap>()[0].len, uint64_t{1} << 32);
  EXPECT_EQ(out.samples[0].ip, out.All<Mmap>()[0].addr + 0xe00);
  EXPECT_EQ(out.samples[1].ip, out.All<Mmap2>()[0].addr + 0x100);
  EXPECT_LE(out.All<Mmap2>()[0].addr, 0xc0000000);
  EXPECT_GE(out.samples[2].ip, 0x20000000);
  EXPECT_LT(out.samples[2].ip, 0x30000000);
}

// Of a kernel that has the upper two of the four gigabytes.
TEST(Remap, A32BitKernelMayBeginBelowTheUsualPlace) {
  Recording in({SomeEvent(perfdata::kSampleBranchStack)});
  in.MapKernel(0x80008000, 0x400000, 0x80008000, "[kernel.kallsyms]_stext");
  in.Map(kPid, 0x8000, 0x4000, 0, "/bin/prog");
  std::vector<uint8_t> words(24);
  StoreUnaligned(words.data(), uint64_t{0x8010}, Endian::kLittle);
  StoreUnaligned(words.data() + 8, uint64_t{0x80009000}, Endian::kLittle);
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = 0x8010;
  sample.branches = perfdata::BranchArray(words, Endian::kLittle);
  in.AddSample(sample);
  const Read out =
      fake::Anonymized(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kArch),
                                   perfdata::EncodeString("armv7l", Endian::kLittle)}}));
  EXPECT_EQ(out.samples[0].branches[0].from, out.All<Mmap2>()[0].addr + 0x10);
  EXPECT_EQ(out.samples[0].branches[0].to, out.All<Mmap>()[0].addr + 0x1000);
}

// Nothing says of which mode the ends of a branch are: the half they are in does.
TEST(Remap, BranchesOutsideAllMappingsStayInTheirHalf) {
  Recording in({SomeEvent(perfdata::kSampleBranchStack)});
  std::vector<uint8_t> words(24);
  StoreUnaligned(words.data(), uint64_t{0x7f0000001123}, Endian::kLittle);
  StoreUnaligned(words.data() + 8, uint64_t{0xffff888000001456}, Endian::kLittle);
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.branches = perfdata::BranchArray(words, Endian::kLittle);
  in.AddSample(sample);
  const Read out = fake::Anonymized(in.Finish());
  const perfdata::BranchEntry branch = out.samples[0].branches[0];
  EXPECT_GE(branch.from, kUserPseudonyms);
  EXPECT_LT(branch.from, kUserPseudonyms + kPseudonymSize);
  EXPECT_GE(branch.to, kKernelPseudonyms);
  EXPECT_LT(branch.to, kKernelPseudonyms + kPseudonymSize);
}

TEST(Remap, ABpfProgramMovesWithTheSymbolThatRegistersIt) {
  Recording in({SomeEvent(0)});
  const uint64_t addr = 0xffffffffc0345678;
  in.Add(RecordType::kKsymbol, perfdata::Ksymbol{addr, 0x3000, 1, 0, "bpf_prog_1"});
  in.SampleAt(kPid, addr + 0x10, 1);
  in.SampleAt(kPid, addr + 0x2010, 1);
  in.Add(RecordType::kKsymbol, perfdata::Ksymbol{addr, 0x3000, 1, 1, "bpf_prog_1"});
  const Read out = fake::Anonymized(in.Finish());
  const auto symbols = out.All<perfdata::Ksymbol>();
  ASSERT_EQ(symbols.size(), 2);
  EXPECT_NE(symbols[0].addr, addr);
  EXPECT_EQ(symbols[1].addr, symbols[0].addr);
  EXPECT_EQ(out.samples[0].ip, symbols[0].addr + 0x10);
  EXPECT_EQ(out.samples[1].ip, symbols[0].addr + 0x2010);  // the pages stay together
}

TEST(Remap, GuestsAreMachinesOfTheirOwn) {
  Recording in({SomeEvent(0)});
  const uint64_t addr = 0xffffffff81000000;
  in.MapKernel(addr, 0x1000000, addr, "[kernel.kallsyms]_text");
  in.Add(RecordType::kMmap,
         Mmap{UINT32_MAX, 0, addr, 0x1000000, addr, "[guest.kernel.kallsyms]_text"}, 4);
  in.SampleAt(kPid, addr + 0x10, 1);
  in.SampleAt(kPid, addr + 0x10, 4);
  const Read out = fake::Anonymized(in.Finish());
  const auto maps = out.All<Mmap>();
  EXPECT_NE(maps[0].addr, maps[1].addr);
  EXPECT_EQ(out.samples[0].ip, maps[0].addr + 0x10);
  EXPECT_EQ(out.samples[1].ip, maps[1].addr + 0x10);
}

// Where one address of a page has a pseudonym, others may lie in a mapping, or just behind it.
TEST(Remap, PagesThatAreMappedInPartArePseudonymsInPart) {
  constexpr uint64_t kModule = 0xffffffffc0200000;
  Recording in({SomeEvent(0)});
  in.MapKernel(kModule + 0x800, 0x400, 0, "[small]");
  in.Map(kPid, 0x555500000000, 0x1000, 0, "/bin/prog");
  for (const uint64_t offset : {0x100, 0x7ff, 0x800, 0xbff, 0xc00, 0xc01, 0x100}) {
    in.SampleAt(kPid, kModule + offset, 1);
  }
  for (const uint64_t offset : {0x1001, 0x1000, 0xfff}) in.SampleAt(kPid, 0x555500000000 + offset);
  const Read out = fake::Anonymized(in.Finish());
  const uint64_t module = out.All<Mmap>()[0].addr - 0x800, prog = out.All<Mmap2>()[0].addr;
  const auto& s = out.samples;
  EXPECT_EQ(s[2].ip, module + 0x800);
  EXPECT_EQ(s[3].ip, module + 0xbff);
  EXPECT_EQ(s[4].ip, module + 0xc00);
  for (const size_t i : {0, 1, 5, 6}) {
    EXPECT_GE(s[i].ip, kKernelPseudonyms) << i;
    EXPECT_LT(s[i].ip, kKernelPseudonyms + kPseudonymSize) << i;
  }
  EXPECT_EQ(s[6].ip, s[0].ip);
  EXPECT_GE(s[7].ip, kUserPseudonyms);
  EXPECT_LT(s[7].ip, kUserPseudonyms + kPseudonymSize);
  EXPECT_EQ(s[8].ip, prog + 0x1000);
  EXPECT_EQ(s[9].ip, prog + 0xfff);
}

}  // namespace
}  // namespace stackreel::anonymize
