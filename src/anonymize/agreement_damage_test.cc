// What the transform makes, the verifier accepts: of records whose fields do not fit together, as a
// fuzzer makes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_agreement.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

class DamageAgreement : public AgreementEach {};
INSTANTIATE_TEST_SUITE_P(Endians, DamageAgreement, testing::Values(Endian::kLittle, Endian::kBig));

// An event whose records have no trailer, and one whose have: a record of the first that is longer
// than its fields ends otherwise when it is written, and its end may be an id of the second.
TEST_P(DamageAgreement, RecordsThatEndInAnEventsIdWhenTheyAreWritten) {
  perfdata::Event plain = SomeEvent(0, 100);
  plain.attr.flags &= ~uint64_t{perfdata::kAttrSampleIdAll};
  perfdata::Event with_trailer = SomeEvent(0, 101);
  Recording in({plain, with_trailer}, options());
  in.AddBytes(RecordOf(RecordType::kMmap,
                       {uint64_t{kPid} << 32 | kPid, kText, 0x4000, 0, 0x6769622f6e69622f, 0}));
  constexpr uint64_t kTask = uint64_t{kPid} << 32 | kPid;
  in.AddBytes(RecordOf(RecordType::kFork, {kTask, kTask, 101, 7}));
  in.AddBytes(RecordOf(RecordType::kExit, {kTask, kTask, 101, 7}));
  in.SampleAt(kPid, kText + 1);
  ExpectAgreement(in.Finish(), Damage::kLeftOut);
}

// Of two ids that differ one is written, and by chance it is an address with what is behind it.
TEST_P(DamageAgreement, RecordsWhoseTwoIdsDiffer) {
  const bool is_little = GetParam() == Endian::kLittle;
  const uint64_t identifier = is_little ? 0x40000000700 : 0x55550000;
  const uint64_t stream = is_little ? 0x555500 : 0x4000000000000;
  Recording in({SomeEvent(perfdata::kSampleId | perfdata::kSampleStreamId)}, options());
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  constexpr uint64_t kTask = uint64_t{kPid} << 32 | kPid;
  in.AddBytes(RecordOf(RecordType::kMmap, {kTask, kText + 0x10000, 0x4000, 0, 0x6769622f6e69622f, 0,
                                           kTask, 5, 7, stream, identifier}));
  in.SampleAt(kPid, kText + 1);
  ExpectAgreement(in.Finish(), Damage::kLeftOut);
}

// A mapping reaches to the end of memory and beyond: what does not lie in it before does not after.
TEST_P(DamageAgreement, MappingsThatReachBeyondTheEndOfMemory) {
  for (const uint64_t len : {uint64_t{1} << 60, UINT64_MAX, uint64_t{0x4000}, uint64_t{0x10000}}) {
    for (const uint64_t addr : {0xfffffff000000000, 0xffffffffffffc000, 0xffffffffffff0000}) {
      SCOPED_TRACE(addr);
      SCOPED_TRACE(len);
      Recording in({SomeEvent(0)}, options());
      in.Map(kPid, addr, len, 0, "//anon");
      in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
      for (uint64_t i = 0; i < 50; ++i) in.SampleAt(kPid, 0x7f0000001000 + (i << 32));
      in.SampleAt(kPid, kText + 5);
      in.SampleAt(kPid, addr);
      in.SampleAt(kPid, addr + 0x1000);
      in.SampleAt(kPid, 0xfffffffffffff000);
      in.SampleAt(kPid, 0xffffffffffff8000);
      ExpectAgreement(in.Finish(), Damage::kLeftOut);
    }
  }
}

// Readers pass it over, so it is not what a program that was called has mapped.
TEST_P(DamageAgreement, MappingsBeyondAllMemoryBehindExec) {
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  in.SampleAt(kPid, kText + 1);
  in.Exec(kPid);
  in.Map(kPid, kText + 0x100000, UINT64_MAX, 0, "/lib/libc.so");
  in.SampleAt(kPid, kText + 2);
  in.Map(kPid, kText + 0x200000, 0x4000, 0, "/bin/other");
  in.SampleAt(kPid, kText + 3);
  in.SampleAt(kPid, kText + 0x200003);
  // Of a process of which nothing else is known.
  in.Map(kPid + 1, kText, UINT64_MAX, 0, "/bin/prog");
  in.SampleAt(kPid + 1, kText + 4);
  ExpectAgreement(in.Finish(), Damage::kLeftOut);
}

// Where it comes into the output, or its ends do, it is found.
TEST_P(DamageAgreement, WhatIsMappedBeyondAllMemoryIsFoundInTheOutput) {
  constexpr uint64_t kBeyond = 0x7f1200001000;
  const auto recording = [&](uint64_t text, uint64_t ip, bool maps_beyond) {
    Recording in({SomeEvent(0)}, options());
    in.Map(kPid, text, 0x4000, 0, "/bin/prog");
    if (maps_beyond) in.Map(kPid, kBeyond, UINT64_MAX, 0, "//anon");
    in.SampleAt(kPid, ip);
    return in.Finish();
  };
  const Bytes in = recording(kText, kText + 1, true);
  const auto of_end = VerifyBytes(in, recording(0x123456789000, kBeyond + 0x234, false));
  ASSERT_TRUE(of_end);
  EXPECT_TRUE(Has(*of_end, FindingKind::kOriginalValue, "SAMPLE", "ip")) << TextOf(*of_end);
  const auto of_mapping = VerifyBytes(in, recording(0x123456789000, 0x123456789001, true));
  ASSERT_TRUE(of_mapping);
  EXPECT_TRUE(Has(*of_mapping, FindingKind::kDifference, "MMAP", "len")) << TextOf(*of_mapping);
}

// Memory lies where the bytes of its own name are an address; readers know it by that name.
TEST_P(DamageAgreement, NamesOfMemoryWhoseBytesAreAnAddress) {
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, 0x6e6f6e612000, 0x1000, 0, "/lib/libc.so");  // "//anon"
  in.Map(kPid, 0x5d7061656000, 0x1000, 0, "/lib/libm.so");  // "[heap]"
  in.Map(kPid, kText, 0x4000, kText, "//anon");
  in.Map(kPid, kText + 0x10000, 0x4000, kText + 0x10000, "[heap]");
  in.SampleAt(kPid, kText + 0x123);
  in.SampleAt(kPid, kText + 0x10123);
  in.SampleAt(kPid, 0x6e6f6e612f2f);
  ExpectAgreement(in.Finish(), Damage::kLeftOut);
}

// What is no digest of anything, but an address.
TEST_P(DamageAgreement, BuildIdsAndTagsThatAreAddresses) {
  constexpr uint64_t kKernel = 0xffffffff81000000;
  Recording in({SomeEvent(0)}, options());
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_stext");
  in.Map(kPid, kText, 0x4000, 0, "/lib/libc.so");
  const Bytes address = Words({kKernel + 0x315}, GetParam());
  perfdata::BpfEvent program;
  program.type = 1;
  std::ranges::copy(address, program.tag.begin());
  in.Add(RecordType::kBpfEvent, program);
  Bytes id(6, 7);
  id.insert(id.end(), address.begin(), address.end());
  id.resize(20, 9);
  perfdata::HeaderBuildId build;
  build.pid = kPid;
  build.build_id = BuildId(id);
  build.filename = "/lib/libc.so";
  in.Add(RecordType::kHeaderBuildId, build);
  in.SampleAt(kPid, kText + 0x123);
  ExpectAgreement(in.Finish(), Damage::kLeftOut);
}

}  // namespace
}  // namespace stackreel::anonymize
