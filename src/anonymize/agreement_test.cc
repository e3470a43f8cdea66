// What the transform makes, the verifier accepts: of odd recordings that a fuzzer has found them to
// differ about.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_agreement.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

std::map<uint32_t, Bytes> ArchIs(const std::string& arch, Endian endian = Endian::kLittle) {
  return {{static_cast<uint32_t>(Feature::kArch), perfdata::EncodeString(arch, endian)}};
}

class Agreement : public AgreementEach {};
INSTANTIATE_TEST_SUITE_P(Endians, Agreement, testing::Values(Endian::kLittle, Endian::kBig));

// Pseudonyms need no more bits than the highest mapping does, and the verifier knows where they
// are.
TEST_P(Agreement, WherePseudonymsOfArm64Are) {
  for (const unsigned bits : {33U, 36U, 37U, 39U, 42U, 47U, 48U, 52U, 56U, 60U}) {
    Recording in({SomeEvent(perfdata::kSampleCallchain)}, options());
    in.Map(kPid, (uint64_t{1} << bits) - 0x20000, 0x10000, 0, "/lib/libc.so");
    const Bytes chain = Words({perfdata::kContextUser, 0x3500401000, 0x401234,
                               perfdata::kContextKernel, 0xffff800008001234},
                              GetParam());
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.ip = 0x401000;
    sample.callchain = perfdata::U64Array(chain, GetParam());
    in.AddSample(sample);
    ExpectAgreement(in.Finish(ArchIs("aarch64", GetParam())));
  }
}

TEST_P(Agreement, HowWideAMachineIsThatIsNotNamed) {
  // A symbol that was unregistered was not seen where it is said to have been.
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, 0x8000, 0x4000, 0, "/bin/prog");
  in.Add(RecordType::kKsymbol, perfdata::Ksymbol{0xffffffffc0345678, 0x100, 1, 1, "bpf_prog_1"});
  in.SampleAt(kPid, 0x8100);
  in.SampleAt(kPid, 0x70000000);
  ExpectAgreement(in.FinishWithoutFeatures());
}

// What is no time is not shifted, wherever it stands.
TEST_P(Agreement, SamplesWithoutATime) {
  const uint64_t tid = uint64_t{kPid} << 32 | kPid;
  for (const uint64_t no_time : {uint64_t{0}, UINT64_MAX}) {
    Recording in({SomeEvent(0)}, options());
    in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
    for (const uint64_t time : {no_time, uint64_t{1000}, no_time, uint64_t{2000}}) {
      in.AddBytes(RecordOf(RecordType::kSample, {100, kText + 1, tid, time}));
    }
    ExpectAgreement(in.Finish());
  }
}

// A name that is hidden may be a byte of a number, and behind it a name that is not.
TEST_P(Agreement, NamesThatAreSpeltByANumberAndAPublicName) {
  constexpr uint64_t kStart = 0xffffffff81000000, kSymbol = kStart + 0x41;
  const char last = GetParam() == Endian::kLittle ? '\xff' : '\x41';
  const auto recording = [&](uint64_t kernel, uint64_t text, const std::string& name,
                             const std::string& before) {
    Recording in({SomeEvent(0)}, options());
    in.MapKernel(kernel, 0x1000000, kernel + (kSymbol - kStart), name);
    in.Map(kPid, text, 0x4000, 0, before + name);
    in.SampleAt(kPid, text + 1);
    return in.Finish();
  };
  const std::string number(1, last), kernel = "[kernel.kallsyms]_text";
  ExpectAgreement(recording(kStart, kText, kernel, number));
  // What is hidden is found behind a number, too.
  VerifyOptions verify;
  verify.level = Level::kSymbols;
  const auto verdict =
      VerifyBytes(recording(kStart, kText, "secretive", number),
                  recording(0xffff900012300000, 0x123456789000, "secretive", "m_"), verify);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(std::ranges::any_of(verdict->findings, [&](const Finding& finding) {
    return finding.value == '"' + number + "secretive\"";
  })) << TextOf(*verdict);
}

// A name that is hidden may be what numbers look like that stay.
TEST_P(Agreement, NamesThatAreSpeltByNumbers) {
  Recording in({SomeEvent(perfdata::kSamplePeriod | perfdata::kSampleWeight)}, options());
  in.Map(kPid, kText, 0x4000, 0, "/opt/" + std::string(12, '\xff'));
  in.Map(kPid, kText + 0x10000, 0x4000, 0, "/opt/secretary");
  in.Add(RecordType::kMmap2, perfdata::Mmap2{kPid,
                                             kPid,
                                             kText + 0x20000,
                                             0x1000,
                                             0,
                                             0,
                                             0,
                                             0,
                                             UINT64_MAX,
                                             {},
                                             UINT32_MAX,
                                             UINT32_MAX,
                                             "/bin/prog"});
  perfdata::Sample sample;
  sample.pid = sample.tid = kPid;
  sample.ip = kText + 1;
  const std::string name = "/secretary/12345";
  sample.period = LoadUnaligned<uint64_t>(AsBytes(name).data(), GetParam());
  sample.weight = LoadUnaligned<uint64_t>(AsBytes(name).data() + 8, GetParam());
  in.AddSample(sample);
  ExpectAgreement(in.Finish());
}

// The same of an offset that is none, and of a name that is no text and stands where it stays.
TEST_P(Agreement, NamesThatAreNoText) {
  const std::string name = "\x81\xff\xff\xff\xff\x01";
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, kText, 0x4000, 0, "/opt/" + name);
  in.Map(kPid, kText + 0x10000, 0x4000, 0, std::string(12, '\xff'));
  in.Map(kPid, kText + 0x20000, 0x1000, UINT64_MAX, "/bin/prog");
  in.SampleAt(kPid, kText + 1);
  auto features = ArchIs(name, GetParam());
  features[static_cast<uint32_t>(Feature::kHostname)] = perfdata::EncodeString(name, GetParam());
  ExpectAgreement(in.Finish(features));
}

// A number of a file is made anew, and a part of it beside others may look like an address.
TEST_P(Agreement, PartsOfNumbersOfFilesAreNoAddress) {
  constexpr uint64_t kKernel = 0xffffffffb4200000;
  Recording in({SomeEvent(0)}, options());
  in.MapKernel(kKernel, 0xbfb0000, kKernel, "[kernel.kallsyms]_text");
  perfdata::Mmap2 mmap;
  mmap.pid = mmap.tid = kPid;
  mmap.addr = kText;
  mmap.len = 0x1000;
  mmap.ino = mmap.ino_generation = 0x1234567890abcdef;
  mmap.prot = 0xffffb42c;
  mmap.flags = 0xffff;
  mmap.filename = "/bin/prog";
  in.Add(RecordType::kMmap2, mmap);
  in.SampleAt(kPid, kText + 1);
  ExpectAgreement(in.Finish(ArchIs("x86_64", GetParam())));
}

// The same of a chain's markers, which stay as well.
TEST_P(Agreement, NamesThatAreSpeltByMarkers) {
  Recording in({SomeEvent(perfdata::kSampleCallchain)}, options());
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  const Bytes chain = Words({perfdata::kContextUser, kText + 1}, GetParam());
  const size_t at = GetParam() == Endian::kBig ? 1 : 2;
  in.Map(kPid, kText + 0x10000, 0x4000, 0,
         "/opt/" + std::string(chain.begin() + at, chain.begin() + at + 6));
  perfdata::Sample sample;
  sample.pid = sample.tid = kPid;
  sample.ip = kText + 1;
  sample.callchain = perfdata::U64Array(chain, GetParam());
  in.AddSample(sample);
  ExpectAgreement(in.Finish());
}

// The same of the flags of branches.
TEST_P(Agreement, NamesThatAreSpeltByFlagsOfBranches) {
  Recording in({SomeEvent(perfdata::kSampleBranchStack)}, options());
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  in.Map(kPid, kText + 0x10000, 0x4000, 0, "/opt/secret");
  const std::string word = "/secret/";
  const Bytes branches =
      Words({kText + 1, kText + 2, LoadUnaligned<uint64_t>(AsBytes(word).data(), GetParam())},
            GetParam());
  perfdata::Sample sample;
  sample.pid = sample.tid = kPid;
  sample.ip = kText + 1;
  sample.branches = perfdata::BranchArray(branches, GetParam());
  in.AddSample(sample);
  ExpectAgreement(in.Finish());
}

// Damage: a chain of a sample of the kernel begins without a marker, so readers take it for user
// space's.
TEST_P(Agreement, ChainsThatBeginWithoutAMarker) {
  constexpr uint64_t kKernel = 0xffffffff81000000;
  Recording in({SomeEvent(perfdata::kSampleCallchain)}, options());
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  const Bytes chain = Words(
      {kText + 0x123, 7, kText + 0x456, perfdata::kContextKernel, kKernel + 0x789}, GetParam());
  perfdata::Sample sample;
  sample.pid = sample.tid = kPid;
  sample.ip = kKernel + 0x789;
  sample.callchain = perfdata::U64Array(chain, GetParam());
  for (const uint16_t mode : {1, 2, 4, 5}) in.AddSample(sample, mode);
  ExpectAgreement(in.Finish());
}

// Where the same text comes into such numbers, it is a leak.
TEST_P(Agreement, ANameThatNumbersSpellOnlyInTheOutputIsFound) {
  const std::string name = "/secretary/12345";
  const auto recording = [&](bool spells) {
    Recording in({SomeEvent(perfdata::kSamplePeriod | perfdata::kSampleWeight)}, options());
    perfdata::Sample sample;
    sample.ip = 0;
    sample.period = spells ? LoadUnaligned<uint64_t>(AsBytes(name).data(), GetParam()) : 1;
    sample.weight = spells ? LoadUnaligned<uint64_t>(AsBytes(name).data() + 8, GetParam()) : 1;
    in.AddSample(sample);
    return in.Finish();
  };
  VerifyOptions verify;
  verify.denied = {"secretary"};
  for (const bool before : {false, true}) {
    const auto verdict = VerifyBytes(recording(before), recording(true), verify);
    ASSERT_TRUE(verdict);
    EXPECT_EQ(Has(*verdict, FindingKind::kText, "SAMPLE", ""), !before) << TextOf(*verdict);
  }
}

// The bytes of a name, in either order, may be an address: no name of a file is.
TEST_P(Agreement, NamesWhoseBytesAreAnAddress) {
  constexpr uint64_t kKernel = 0xffffffffb4000000, kLib = 0x7f1232343000;
  const auto swapped = [](uint64_t address) {
    std::string text(8, 0);
    StoreUnaligned(reinterpret_cast<uint8_t*>(text.data()), address, Endian::kBig);
    return text;
  };
  std::string reversed = swapped(kKernel + 0x3c2e33);
  std::ranges::reverse(reversed);
  Recording in({SomeEvent(0)}, options());
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
  in.Map(kPid, kLib, 0x4000, 0, "/lib/libc.so");
  uint64_t at = kText;
  for (const std::string& name :
       {"/opt/a" + reversed, "/opt/" + swapped(kKernel + 0x3c2e33) + "/b",
        std::string("/opt/g542\x12\x7f"), std::string("/opt/7f1232343567"),
        std::string("/opt/CC\x23\xf1\x07")}) {  // ends as the address, its hex, and its page do
    in.Map(kPid, at += 0x10000, 0x1000, 0, name);
    in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, name.substr(5)});
  }
  // In none of those: their names change, and with them what frames are compared by.
  in.SampleAt(kPid, kLib + 1);
  ExpectAgreement(in.Finish());
}

// "PERFILE2" and the size behind it are where something is mapped.
TEST_P(Agreement, TheMagicOfAFileLooksLikeAnAddress) {
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, 0x1032454c494000, 0x1000, 0, "/lib/libc.so");
  in.Map(kPid, 0x6832454c494000, 0x1000, 0, "/lib/libm.so");
  in.SampleAt(kPid, 0x1032454c494652);
  ExpectAgreement(in.Finish());
}

TEST_P(Agreement, TracingDataThatIsEmpty) {
  Recording in({SomeEvent(0)}, options());
  in.SampleAt(kPid, kText);
  ExpectAgreement(in.Finish({{static_cast<uint32_t>(Feature::kTracingData), {}}}));
}

// One mapping as large as all memory leaves no page for pseudonyms that was not mapped.
TEST_P(Agreement, PseudonymsWhereAllIsMapped) {
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, 0x401000, 0x400000001000, 0x1000, "/bin/prog");
  for (uint64_t i = 0; i < 100; ++i) in.SampleAt(kPid + 1, 0x7f0000001000 + (i << 12));
  ExpectAgreement(in.Finish());
}

// Memory of the kernel that lies far behind its image, as of BPF programs on arm64, where perf
// tells of an image that reaches to the end of memory.
TEST_P(Agreement, FarBehindTheKernelsImage) {
  Recording in({SomeEvent(perfdata::kSampleCallchain)}, options());
  constexpr uint64_t kKernel = 0xffff800010000000;
  in.MapKernel(kKernel, 0x7fffeffff000, kKernel, "[kernel.kallsyms]_text");
  const Bytes chain =
      Words({perfdata::kContextKernel, kKernel + 0x1234, kKernel + (uint64_t{8} << 30) + 0x5678},
            GetParam());
  perfdata::Sample sample;
  sample.pid = sample.tid = kPid;
  sample.ip = kKernel + 0x1234;
  sample.callchain = perfdata::U64Array(chain, GetParam());
  in.AddSample(sample, 1);
  in.SampleAt(kPid, kKernel + (uint64_t{5} << 30), 1);
  ExpectAgreement(in.Finish());
}

// Damage: a kernel ends before its own symbol, a guest's begins below.
TEST_P(Agreement, KernelsThatCannotBe) {
  constexpr uint64_t kKernel = 0xffffffff81000000;
  for (const auto& [addr, len] : std::initializer_list<std::pair<uint64_t, uint64_t>>{
           {0x1ffffff81000000, 0xfebfff},
           {kKernel - 0x4000, 0x4000},
           {kKernel, 0},
           {kKernel + 0x4000, 0x4000},
           {0xfffffffff1000000, 0x4000},
           {kKernel - (uint64_t{8} << 30), UINT64_MAX}}) {
    Recording in({SomeEvent(0)}, options());
    in.MapKernel(addr, len, kKernel, "[kernel.kallsyms]_text");
    in.Add(
        RecordType::kMmap,
        perfdata::Mmap{UINT32_MAX, UINT32_MAX, addr, len, kKernel, "[guest.kernel.kallsyms]_text"},
        4);
    for (const uint16_t mode : {1, 4}) {
      for (const uint64_t address : {addr + 0x123, kKernel + 0x71f2, uint64_t{4}, kKernel - 1}) {
        in.SampleAt(kPid, address, mode);
      }
    }
    SCOPED_TRACE(addr);
    ExpectAgreement(in.Finish(ArchIs("x86_64", GetParam())));
  }
}

// A kernel of 64 bits that is asked for the name of one of 32, and a name that is damaged.
TEST_P(Agreement, WideAddressesOfAMachineThatIsNamedNarrow) {
  constexpr uint64_t kKernel = 0xffffffff81000000;
  for (const char* arch : {"i686", "armv7l", "prefdata.bad"}) {
    Recording in({SomeEvent(0)}, options());
    in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_stext");
    in.Map(kPid, 0x401000, 0x1000, 0x1000, "/bin/prog");
    in.SampleAt(kPid, 0x401215);
    in.SampleAt(kPid, kKernel + 0x312, 1);
    ExpectAgreement(in.Finish(ArchIs(arch, GetParam())));
  }
}

// Two kernels, of which one may tell of itself from lower down, and a module that was loaded twice.
TEST_P(Agreement, SeveralKernels) {
  constexpr uint64_t kFirst = 0xffffffffb4200000, kSecond = 0xffffffff81000000;
  for (const uint64_t below : {kSecond, uint64_t{0}}) {
    Recording in({SomeEvent(0)}, options());
    in.MapKernel(kFirst, 0xbfb0000, kFirst, "[kernel.kallsyms]_text");
    in.MapKernel(below, kSecond + 0x1000000 - below, kSecond + 0x100, "[kernel.kallsyms]_stext");
    in.MapKernel(0xffffffffc0200000, 0x4000, 0, "[ext4]");
    in.MapKernel(0xffffffffc0300000, 0x4000, 0, "[ext4]");
    for (const uint64_t address : {kFirst + 0x71f2, kSecond + 0x123, kSecond + 0x100,
                                   uint64_t{0xffffffffc0200123}, uint64_t{0xffffffffc0300456}}) {
      in.SampleAt(kPid, address, 1);
    }
    ExpectAgreement(in.Finish(ArchIs("x86_64", GetParam())));
  }
}

// Damage: where the flags of a branch should be stands an address.
TEST_P(Agreement, FlagsOfBranchesThatAreAddresses) {
  constexpr uint64_t kLib = 0x78e429400000;
  Recording in({SomeEvent(perfdata::kSampleBranchStack)}, options());
  in.Map(kPid, kLib, 0x30000, 0, "/lib64/ld-2.23.so");
  const Bytes branches = Words(
      {kLib + 0x123, kLib + 0x456, 1, kLib + 0x789, kLib + 0x12990, kLib + 0xabc}, GetParam());
  perfdata::Sample sample;
  sample.pid = sample.tid = kPid;
  sample.ip = kLib + 0x123;
  sample.branches = perfdata::BranchArray(branches, GetParam());
  in.AddSample(sample);
  ExpectAgreement(in.Finish());
}

// Damage: the offset in a file is an address.
TEST_P(Agreement, OffsetsInFilesThatAreAddresses) {
  constexpr uint64_t kLib = 0x78e429400000;
  Recording in({SomeEvent(perfdata::kSampleCallchain)}, options());
  in.Map(kPid, kText, 0x4000, kLib + 0x12990, "/bin/prog");
  in.Map(kPid, kLib, 0x30000, 0, "/lib64/ld-2.23.so");
  in.Map(kPid, kText + 0x8000, 0x4000, kLib - 0x3000, "/bin/prog");
  for (const uint64_t address :
       {kText + 0x123, kText + 0x3123, kText + 0x8321, kText + 0xb321, kLib + 0x12990}) {
    in.SampleAt(kPid, address);
  }
  ExpectAgreement(in.Finish());
}

// Damage: a module as large as all memory lies over the kernel, one begins where no kernel is.
TEST_P(Agreement, ModulesOfTheKernelThatCannotBe) {
  constexpr uint64_t kKernel = 0xffffffffb4200000;
  for (const auto& [addr, len] : std::initializer_list<std::pair<uint64_t, uint64_t>>{
           {0xb43dffffc025b000, 0xb43d0900ffffffff},
           {0x100000000, 0x1000},
           {0x1000, UINT64_MAX},
           {1, UINT64_MAX},
           {kKernel + 0x1000, UINT64_MAX},
           {kKernel - 0x1000, 0x100003000}}) {
    Recording in({SomeEvent(0)}, options());
    in.MapKernel(kKernel, 0xbfb0000, kKernel, "[kernel.kallsyms]_text");
    in.MapKernel(addr, len, 0x12ffffffff, "");
    in.Map(kPid, kText, 0x4000, 0, "/" + std::string(16, '\xff'));
    in.SampleAt(kPid, kKernel + 0x71f2, 1);
    in.SampleAt(kPid, addr + 0x123, 1);
    in.SampleAt(kPid, 0xffffffffc0201234, 1);
    SCOPED_TRACE(addr);
    ExpectAgreement(in.Finish(ArchIs("x86_64", GetParam())));
  }
}

// The same where the offset is an address, in what cannot be and in a file's.
TEST_P(Agreement, OffsetsThatAreAddressesInModulesThatCannotBe) {
  constexpr uint64_t kModule = 0xffffffff81000000;
  for (const uint64_t len : {uint64_t{0xfffffffe01000000}, UINT64_MAX, uint64_t{0x1000}}) {
    Recording in({SomeEvent(0)}, options());
    in.MapKernel(kModule, len, kModule, "[kernel.");
    in.Map(kPid, kText, 0x4000, kModule + 0x10, "/bin/prog");
    in.SampleAt(kPid, kText + 0x123);
    in.SampleAt(kPid, kModule + 0x123, 1);
    SCOPED_TRACE(len);
    ExpectAgreement(in.Finish(ArchIs("x86_64", GetParam())));
  }
}

// What stands before a text, and how many there are of something, tells nothing: at 4 GB and in
// pages whose number begins with a text's size lies something.
TEST_P(Agreement, SizesOfTextsAndNumbersOfThingsAreNoAddress) {
  perfdata::Event event = SomeEvent(0);
  event.name = "event7";
  Recording in({event}, options());
  in.Map(kPid, 0x100000000, 0x1000, 0x100000000, "/bin/prog");
  in.Map(kPid, 0xcb00000000, 0x1000, 0, "/lib/libc.so");
  in.Map(kPid, 0x6500000040000, 0x1000, 0, "/lib/liba.so");
  in.Map(kPid, 0x406576656e000, 0x1000, 0, "/lib/libm.so");
  in.Map(kPid, 0x400000006576000, 0x1000, 0, "/lib/libz.so");
  in.Map(kPid, 0x1000000000000000, 0x1000, 0, "/lib/libx.so");
  in.Add(RecordType::kMmap, perfdata::Mmap{kPid, kPid, kText, 0x1000, 0, "/lib/liby.so"}, 0);
  in.SampleAt(kPid, 0x100000123);
  ExpectAgreement(in.Finish(
      {{static_cast<uint32_t>(Feature::kHostname), perfdata::EncodeString("event7", GetParam())}}));
}

// A text's end and a number's beginning.
TEST_P(Agreement, PartsOfATextAndOfANumberAreNoValue) {
  Recording in({SomeEvent(0)}, options());
  in.Map(kPid, 0x000a00007878000, 0x1000, 0, "/lib/libc.so");
  in.Map(kPid, 0x0000787878780000, 0x1000, 0, "/lib/libm.so");
  for (const char* name : {"xx", "xxx", "xxxx", "xxxxx", "xxxxxx", "xxxxxxx"}) {
    in.Add(RecordType::kComm, perfdata::Comm{kPid, kPid, name});
  }
  in.SampleAt(kPid, kText);
  ExpectAgreement(in.Finish());
}

// The place of an event's ids in a damaged file may be anywhere: they would go out as they are.
TEST_P(Agreement, IdsThatNoKernelGivesAreRefused) {
  for (const auto& [id, is_good] : {std::pair{uint64_t{1} << 39, true},
                                    {(uint64_t{1} << 30) + 1'000'000'000, true},
                                    {kText + 8, false},
                                    {UINT64_MAX, false}}) {
    perfdata::Event event = SomeEvent(0, 101);
    event.ids.push_back(id);
    Recording in({SomeEvent(0), event}, options());
    in.SampleAt(kPid, kText + 1);
    const Bytes bytes = in.Finish();
    MemorySource source(bytes);
    MemorySink sink;
    for (const bool salvage : {false, true}) {
      Options some;
      some.salvage = salvage;
      const auto outcome = Anonymize(RereadableRecording(source), sink, SomeKey(), some);
      EXPECT_EQ(outcome.has_value(), is_good);
      EXPECT_TRUE(outcome || outcome.error().kind == ErrorKind::kDamaged);
    }
  }
}

}  // namespace
}  // namespace stackreel::anonymize
