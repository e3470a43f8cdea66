#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>

#include "perfdata/record.h"
#include "session/fake_recording.h"
#include "session/session.h"

namespace stackreel::session {
namespace {

using perfdata::Record;
using perfdata::RecordType;

TEST_F(SessionTest, MasksByTheirSource) {
  features_.arch = "aarch64";
  session_.Apply(MakeMmap2(1, 0xaaaaaaaa0000, 0x1000, 0, "/a"));
  const auto mask = [&](uint32_t pid, const perfdata::Sample* sample = nullptr) {
    return session_.MaskOf(session_.ProcessOf(pid), sample);
  };
  EXPECT_EQ(mask(1).source, MaskSource::kHighestMapping);
  EXPECT_EQ(mask(1).insn, 0x007f000000000000U);
  const std::string_view meta_info("arm64_pac_mask\0007f000000000000\0", 30);
  features_.raw[129].assign(meta_info.begin(), meta_info.end());
  EXPECT_EQ(mask(1).source, MaskSource::kSimpleperf);
  perfdata::PacMask side_band;
  side_band.pid = 1;
  side_band.insn_mask = 0x0070000000000000;
  session_.Apply(Record{perfdata::kRecordTypePacMask, 0, side_band, {}});
  EXPECT_EQ(mask(1), (PointerMask{0x0070000000000000, 0, MaskSource::kSideBand}));
  session_.Apply(MakeTask(RecordType::kFork, 2, 1, 2, 1));
  EXPECT_EQ(mask(2).source, MaskSource::kSideBand) << "fork copies it";
  session_.Apply(MakeComm(2, 2, "x", /*exec=*/true));
  EXPECT_EQ(mask(2).source, MaskSource::kSimpleperf) << "exec resets it";
  perfdata::Sample sample;
  sample.present = perfdata::kSampleArch1;
  sample.arch_insn_mask = 0x007f000000000000;
  EXPECT_EQ(mask(1, &sample).source, MaskSource::kSample);
  EXPECT_EQ(session_.counters().Get("session.mask_contradicts"), 1u);
  EXPECT_EQ(session_.counters().Get("session.mask_hits_addresses"), 0u);
}

// A mask that would change the addresses of the process's own code is not used; the next best is.
TEST_F(SessionTest, MasksThatHitAddressesAreNotUsed) {
  features_.arch = "aarch64";
  session_.Apply(MakeMmap2(1, 0xaaaaaaaa0000, 0x1000, 0, "/a"));
  perfdata::Sample sample;
  sample.present = perfdata::kSampleArch1;
  sample.arch_insn_mask = 0x007fff8000000000;  // of 39-bit addresses
  const auto mask = session_.MaskOf(session_.ProcessOf(1), &sample);
  EXPECT_EQ(mask.source, MaskSource::kHighestMapping);
  EXPECT_EQ(mask.insn, 0x007f000000000000U);
  EXPECT_EQ(session_.counters().Get("session.mask_hits_addresses"), 1u);
}

TEST_F(SessionTest, MasksOfUnknownProcessesAreCounted) {
  features_.arch = "aarch64";
  perfdata::PacMask side_band;
  side_band.pid = 7;
  side_band.insn_mask = 0x0070000000000000;
  session_.Apply(Record{perfdata::kRecordTypePacMask, 0, side_band, {}});
  EXPECT_EQ(session_.counters().Get("session.mask_of_unknown_process"), 1u);
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(7), nullptr).source, MaskSource::kSideBand);
}

Record MakePtrAuth(uint32_t pid, uint32_t tid, uint64_t keys, uint64_t mask) {
  return Record{static_cast<uint32_t>(RecordType::kPtrAuth),
                0,
                perfdata::PtrAuth{pid, tid, keys, mask, mask},
                {}};
}

constexpr uint64_t kMask48 = 0x007f000000000000, kMask52 = 0x0070000000000000;

// What the kernel says holds from its time on, for all of the process.
TEST_F(SessionTest, TheKernelsMasksFollowForkAndExec) {
  features_.arch = "aarch64";
  session_.Apply(MakeMmap2(1, 0xaaaaaaaa0000, 0x1000, 0, "/a"));
  const auto mask = [&](uint32_t pid) { return session_.MaskOf(session_.ProcessOf(pid), nullptr); };
  session_.Apply(MakePtrAuth(1, 1, 0x1f, kMask48));
  EXPECT_EQ(mask(1), (PointerMask{kMask48, kMask48, MaskSource::kKernel}));
  session_.Apply(MakeTask(RecordType::kFork, 2, 1, 2, 1));
  EXPECT_EQ(mask(2).source, MaskSource::kKernel) << "fork copies it";
  session_.Apply(MakePtrAuth(1, 1, 0x1f, kMask52));
  EXPECT_EQ(mask(1).insn, kMask52);
  EXPECT_EQ(mask(2).insn, kMask48) << "the child's is its own";
  session_.Apply(MakeComm(2, 2, "x", /*exec=*/true));
  EXPECT_EQ(mask(2).source, MaskSource::kHighestMapping) << "exec resets it";
  EXPECT_FALSE(session_.FindThread(2)->enabled_keys);
  session_.Apply(MakePtrAuth(2, 2, 0x1f, 0));
  EXPECT_EQ(mask(2), (PointerMask{0, 0, MaskSource::kKernel})) << "a program of 32 bits";
}

// Keys are a thread's, masks are not: what was signed before the keys were disabled is still there.
TEST_F(SessionTest, DisabledKeysLeaveTheMask) {
  features_.arch = "aarch64";
  session_.Apply(MakeMmap2(1, 0xaaaaaaaa0000, 0x1000, 0, "/a"));
  session_.Apply(MakePtrAuth(1, 1, 0x1f, kMask48));
  session_.Apply(MakeTask(RecordType::kFork, 1, 1, 5, 1));
  EXPECT_EQ(session_.FindThread(5)->enabled_keys, 0x1fu) << "of the thread that made it";
  session_.Apply(MakePtrAuth(1, 5, 0, kMask48));
  EXPECT_EQ(session_.FindThread(5)->enabled_keys, 0u);
  EXPECT_EQ(session_.FindThread(1)->enabled_keys, 0x1fu);
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), nullptr).insn, kMask48);
  // The number comes back as another process's.
  session_.Apply(MakeTask(RecordType::kExit, 1, 1, 5, 1));
  session_.ThreadOf(7, 5);
  EXPECT_FALSE(session_.FindThread(5)->enabled_keys);
}

TEST_F(SessionTest, TheKernelsMaskIsBetterThanOursAndWorseThanTheSamples) {
  features_.arch = "aarch64";
  session_.Apply(MakeMmap2(1, 0xaaaaaaaa0000, 0x1000, 0, "/a"));
  perfdata::PacMask ours;
  ours.pid = ours.tid = 1;
  ours.insn_mask = ours.data_mask = kMask48;
  ours.source = perfdata::PacMask::kAskedOfCpu;
  const Record asked{perfdata::kRecordTypePacMask, 0, ours, {}};
  session_.Apply(asked);
  session_.Apply(MakePtrAuth(1, 1, 0x1f, kMask52));
  session_.Apply(asked);
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), nullptr),
            (PointerMask{kMask52, kMask52, MaskSource::kKernel}));
  ours.source = perfdata::PacMask::kProcFile;
  session_.Apply(Record{perfdata::kRecordTypePacMask, 0, ours, {}});
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), nullptr),
            (PointerMask{kMask48, kMask48, MaskSource::kKernel}));
  perfdata::Sample sample;
  sample.present = perfdata::kSampleArch1;
  sample.arch_insn_mask = kMask52;
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), &sample).source, MaskSource::kSample);
}

// Another kernel may give the number 23 to another record.
TEST_F(SessionTest, RecordsThatTheirEventDidNotAskForAreNoMasks) {
  features_.arch = "aarch64";
  session_.Apply(MakeMmap2(1, 0xaaaaaaaa0000, 0x1000, 0, "/a"));
  perfdata::Attr attr;
  attr.flags = perfdata::kAttrSampleIdAll;
  const perfdata::RecordContext context{Endian::kLittle, &attr};
  const auto bytes = *perfdata::EncodeRecord(MakePtrAuth(1, 1, 0x1f, kMask52), context);
  perfdata::TimedRecord timed;
  timed.raw.type = static_cast<uint32_t>(RecordType::kPtrAuth);
  timed.raw.bytes = bytes;
  session_.Apply(timed, context);
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), nullptr).source, MaskSource::kHighestMapping);
  EXPECT_EQ(session_.counters().Get("session.mask_not_asked_for"), 1u);
  attr.flags |= perfdata::kAttrPtrAuth;
  session_.Apply(timed, context);
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), nullptr).source, MaskSource::kKernel);
}

TEST_F(SessionTest, NoMaskOnX86) {
  features_.arch = "x86_64";
  session_.Apply(MakeMmap2(1, 0x555555550000, 0x1000, 0, "/a"));
  EXPECT_EQ(session_.MaskOf(session_.ProcessOf(1), nullptr), PointerMask{});
}

}  // namespace
}  // namespace stackreel::session
