#include "analyze/analysis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/analysis_fixture.h"
#include "analyze/sample_selector.h"
#include "perfdata/pac_mask.h"

namespace stackreel::analyze {
namespace {

using perfdata::kContextKernel;
using perfdata::kContextUser;
using perfdata::RecordType;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(AnalysisTest, ChainsOfKernelAndUser) {
  FakeRecording recording;
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  MapProgram(recording);
  recording.Comm(1, 1, "prog");
  recording.Chain({kContextKernel, kKernelText + 0x110, kKernelText + 0x210, kContextUser,
                   kBias + 0x1010, kBias + 0x2100, 0x1234},
                  kKernelMode);
  // 0x2100 is a return address: the call is the last thing f2000 does.
  EXPECT_THAT(Run(recording), ElementsAre("prog: k:k_inner k:k_outer' f1000 f2000' 1234'"));
  EXPECT_EQ(result_.frames, 5U);
  EXPECT_EQ(result_.unresolved_frames, 1U);
}

TEST_F(AnalysisTest, TheSameForAnyNumberOfWorkersAndAnySink) {
  FakeRecording recording;
  MapProgram(recording);
  recording.Comm(1, 1, "prog");
  for (uint64_t i = 0; i < 3000; ++i) {
    // Functions, and now and then an address without one, or in no mapping.
    recording.Chain({kContextUser, kBias + 0x1000 + i % 64, kBias + 0x2001 + i % 7,
                     i % 5 == 0 ? 0x1234 + i : kBias + 0x3000});
    if (i % 1000 == 999) recording.Comm(1, 1, "prog" + std::to_string(i));
  }
  bytes_ = recording.Take();
  for (const bool with_records : {false, true}) {
    AnalysisOptions options;
    options.records = with_records;
    options.filter.symbols = {"f2000"};
    executor_ = &inline_;
    by_portions_ = true;  // not asked for
    const std::vector<std::string> alone = RunBytes(options);
    ASSERT_THAT(alone, SizeIs(3000));
    EXPECT_EQ(sink_.portions, 0U);
    const AnalysisResult one = result_;
    executor_ = &backward_;
    for (const bool by_portions : {false, true}) {
      by_portions_ = by_portions;
      EXPECT_EQ(RunBytes(options), alone);
      EXPECT_EQ(sink_.portions > 0, by_portions);
      EXPECT_EQ(result_.samples, one.samples);
      EXPECT_EQ(result_.frames, one.frames);
      EXPECT_EQ(result_.unresolved_frames, one.unresolved_frames);
    }
    LateExecutor late;
    late_ = &late;
    by_portions_ = true;
    EXPECT_EQ(RunBytes(options), alone);
    EXPECT_GT(late.started, 5U);
    EXPECT_FALSE(late.is_running());
    EXPECT_EQ(result_.unresolved_frames, one.unresolved_frames);
    late_ = nullptr;
  }
}

TEST_F(AnalysisTest, RecordsAreNotShownWhereNoEventIsKnown) {
  FakeRecording recording;
  recording.Comm(1, 1, "prog");
  bytes_ = recording.Take();
  constexpr size_t kAttrsSize = 32;  // in the header of the file
  StoreUnaligned<uint64_t>(bytes_.data() + kAttrsSize, 0, kNativeEndian);
  AnalysisOptions options;
  options.records = true;
  EXPECT_THAT(RunBytes(options), IsEmpty());
  EXPECT_EQ(counters_.Get("analyze.record_without_event"), 1U);
}

TEST_F(AnalysisTest, AHandlerReturnsToTheFirstInstructionOfItsTrampoline) {
  FakeRecording recording;
  MapProgram(recording);
  recording.Comm(1, 1, "prog");
  recording.Chain({kContextUser, kBias + 0x1010, kBias + 0x3000, kBias + 0x2050});
  // No symbol holds 0x2fff: f3000 was not called from there, it is returned to.
  EXPECT_THAT(Run(recording), ElementsAre("prog: f1000 f3000' f2000'"));
}

TEST_F(AnalysisTest, AnEmptyChainLeavesTheSampledAddress) {
  FakeRecording recording;
  MapProgram(recording);
  perfdata::Sample sample;
  sample.ip = kBias + 0x1010;
  recording.Sample(sample);
  EXPECT_THAT(Run(recording), ElementsAre(":1: (empty) f1000"));
}

TEST_F(AnalysisTest, EventsWithoutChains) {
  FakeRecording recording({MakeEvent(kPlainSample, 1, "e")});
  MapProgram(recording);
  perfdata::Sample sample;
  sample.ip = kBias + 0x2010;
  recording.Sample(sample);
  sample.ip = kKernelText;
  recording.Sample(sample, kKernelMode);
  EXPECT_THAT(Run(recording), ElementsAre(":1: f2000", ":1: k:ffffffff81000000"));
}

TEST_F(AnalysisTest, ContextsThatAreNotOursHaveNoModules) {
  FakeRecording recording;
  MapProgram(recording);
  recording.KernelMmap(kKernelText, 0x1000, "[guest.kernel.kallsyms]", 4);
  recording.Chain({perfdata::kContextHv, kBias + 0x1010, perfdata::kContextGuestUser,
                   kBias + 0x1010, perfdata::kContextGuestKernel, kKernelText + 0x10});
  EXPECT_THAT(Run(recording), ElementsAre(":1: 555500001010 555500001010 k:ffffffff81000010"));
}

TEST_F(AnalysisTest, AnUnknownContextDropsTheChain) {
  FakeRecording recording;
  MapProgram(recording);
  recording.Chain({kContextUser, kBias + 0x1010, static_cast<uint64_t>(-3000), kBias + 0x2010});
  EXPECT_THAT(Run(recording), ElementsAre(":1: (empty) f1000"));
  EXPECT_EQ(counters_.Get("analyze.bad_chain"), 1U);
}

constexpr uint64_t kCode48 = 0x002a000000000000;  // a code of 48-bit addresses
constexpr uint64_t kCode52 = 0x0050000000000000;  // of 52-bit ones

// Whatever is signed is stripped, in both byte orders, by the mask of the highest mapping.
TEST_F(AnalysisTest, SignedChainsAreStripped) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    FakeRecording recording({MakeEvent(kChainSample, 1, "e")}, endian);
    recording.Arch("aarch64");
    MapProgram(recording);
    recording.Mmap(1, 0xffff80000000, 0x1000, 0, "[vdso]");
    recording.Chain({kContextUser, kBias + 0x1010, (kBias + 0x2050) | kCode48, kBias + 0x3050});
    EXPECT_THAT(Run(recording), ElementsAre(":1: f1000 f2000' f3000'"));
    ASSERT_THAT(result_.masks, SizeIs(1));
    EXPECT_EQ(result_.masks[0].mask.insn, 0x007f000000000000u);
    EXPECT_EQ(result_.masks[0].mask.source, session::MaskSource::kHighestMapping);
    EXPECT_EQ(result_.masks[0].samples, 1u);
  }
}

// Masks change in the middle of a recording and differ by process: by what the sample says
// (PERF_SAMPLE_ARCH_1), else by the process's record.
TEST_F(AnalysisTest, EachSampleIsStrippedByItsOwnMask) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    FakeRecording recording({MakeEvent(kChainSample | perfdata::kSampleArch1, 1, "e")}, endian);
    recording.Arch("aarch64");
    const auto add = [&](uint32_t pid, uint64_t mask, uint64_t code) {
      perfdata::Sample sample;
      sample.pid = sample.tid = pid;
      sample.ip = kBias + 0x1010;
      sample.arch_insn_mask = mask;
      const auto chain = recording.Words({kContextUser, kBias + 0x1010, (kBias + 0x2050) | code});
      sample.callchain = perfdata::U64Array(chain, endian);
      recording.Sample(sample);
    };
    for (const uint32_t pid : {1u, 2u}) {
      MapProgram(recording, pid);
      recording.Mmap(pid, 0xffff80000000, 0x1000, 0, "[vdso]");
    }
    add(1, 0x007f000000000000, kCode48);
    add(2, 0x0070000000000000, kCode52);
    add(1, 0x0070000000000000, kCode52);
    add(2, 0, 0);        // keys off: nothing is signed
    add(2, 0, kCode48);  // nor taken for an address of the program
    EXPECT_THAT(Run(recording),
                ElementsAre(":1: f1000 f2000'", ":2: f1000 f2000'", ":1: f1000 f2000'",
                            ":2: f1000 f2000'", ":2: f1000 2a555500002050'"));
    ASSERT_THAT(result_.masks, SizeIs(3));
    EXPECT_EQ(result_.masks[1].mask.insn, 0x0070000000000000u);
    EXPECT_EQ(result_.masks[1].samples, 2u);
    EXPECT_EQ(result_.masks[1].mask.source, session::MaskSource::kSample);
  }
}

// The processes' own records: one has 52-bit addresses from some time on, its child too; exec
// forgets it.
TEST_F(AnalysisTest, MasksOfProcessesAreKeptOverTime) {
  FakeRecording recording;
  recording.Arch("aarch64");
  MapProgram(recording);
  recording.Chain({kContextUser, kBias + 0x1010, (kBias + 0x2050) | kCode48});
  perfdata::PacMask mask;
  mask.pid = 1;
  mask.insn_mask = 0x0070000000000000;
  mask.time = 2;  // the first sample's
  recording.Add(RecordType::kEventUpdate, 0, perfdata::MakePacMaskUpdate(mask, Endian::kLittle));
  recording.Chain({kContextUser, kBias + 0x1010, (kBias + 0x2050) | kCode52});
  recording.Chain({kContextUser, kBias + 0x1010, (kBias + 0x2050) | kCode48});
  EXPECT_THAT(Run(recording),
              ElementsAre(":1: f1000 f2000'", ":1: f1000 f2000'", ":1: f1000 a555500002050'"));
  EXPECT_THAT(result_.masks, SizeIs(2));
}

// The kernel's records, as a kernel that has them writes them: a thread that disables its keys has
// frames from before, which are signed.
TEST_F(AnalysisTest, MasksOfTheKernelsRecordsAreUsedFromTheirTimeOn) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    perfdata::Event event = MakeEvent(kChainSample, 1, "e");
    event.attr.flags |= perfdata::kAttrPtrAuth;
    FakeRecording recording({event}, endian);
    recording.Arch("aarch64");
    MapProgram(recording);
    const auto say = [&](uint64_t keys, uint64_t mask) {
      recording.Add(RecordType::kPtrAuth, 0, perfdata::PtrAuth{1, 1, keys, mask, mask});
    };
    const auto sample = [&](uint64_t code) {
      recording.Chain({kContextUser, kBias + 0x1010, (kBias + 0x2050) | code});
    };
    say(0x1f, 0x007f000000000000);
    sample(kCode48);
    say(0, 0x007f000000000000);
    sample(kCode48);
    say(0x1f, 0x0070000000000000);
    sample(kCode52);
    sample(kCode48);  // of which four bits are none of a code now
    EXPECT_THAT(Run(recording), ElementsAre(":1: f1000 f2000'", ":1: f1000 f2000'",
                                            ":1: f1000 f2000'", ":1: f1000 a555500002050'"));
    ASSERT_THAT(result_.masks, SizeIs(2));
    EXPECT_EQ(result_.masks[0].mask.source, session::MaskSource::kKernel);
    EXPECT_EQ(result_.masks[0].samples, 2u);
  }
}

TEST_F(AnalysisTest, BranchRecordsInCallStackModeAreTheUserChain) {
  constexpr uint64_t kCallStack = 1u << 11;
  perfdata::Event event = MakeEvent(kChainSample | perfdata::kSampleBranchStack, 1, "e");
  event.attr.branch_sample_type = kCallStack;
  FakeRecording recording({event});
  recording.KernelMmap(kKernelText, 0x1000000, "[kernel.kallsyms]_text");
  MapProgram(recording);
  perfdata::Sample sample;
  const auto chain = recording.Words(
      {kContextKernel, kKernelText + 0x110, kContextUser, kBias + 0x1010, kBias + 0x9999});
  sample.callchain = perfdata::U64Array(chain, Endian::kLittle);
  const auto branches =
      recording.Words({kBias + 0x2050, kBias + 0x1000, 0, kBias + 0x3050, kBias + 0x2000, 0});
  sample.branches = perfdata::BranchArray(branches, Endian::kLittle);
  recording.Sample(sample, kKernelMode);
  EXPECT_THAT(Run(recording), ElementsAre(":1: k:k_inner f1000 f2000 f3000"));
}

TEST_F(AnalysisTest, LossIsCounted) {
  FakeRecording recording;
  recording.Add(perfdata::RecordType::kLost, 0, perfdata::Lost{1, 5});
  recording.Add(perfdata::RecordType::kLostSamples, 0, perfdata::LostSamples{3});
  Run(recording);
  EXPECT_EQ(result_.lost, 8U);
}

TEST_F(AnalysisTest, WhatASampleCounts) {
  perfdata::Event fixed = MakeEvent(kPlainSample, 1, "fixed");
  perfdata::Event frequency = MakeEvent(kPlainSample, 2, "frequency");
  frequency.attr.flags |= perfdata::kAttrFreq;
  const perfdata::Event stated = MakeEvent(kPlainSample | perfdata::kSamplePeriod, 3, "stated");
  FakeRecording recording({fixed, frequency, stated});
  perfdata::Sample sample;
  sample.period = 77;
  for (const uint32_t event : {0, 1, 2}) recording.Sample(sample, kUserMode, event);
  Run(recording);
  EXPECT_THAT(sink_.periods, ElementsAre(1000, 1, 77));
}

// Leader sampling: each sample has the counts of the group since it was opened.
TEST_F(AnalysisTest, ASampleWithCountsStandsForEachEventThatHappened) {
  std::vector<perfdata::Event> events;
  for (const uint64_t id : {1, 2}) {
    events.push_back(MakeEvent(kPlainSample | perfdata::kSamplePeriod | perfdata::kSampleRead, id,
                               "event" + std::to_string(id)));
    events.back().attr.read_format = perfdata::kReadId | perfdata::kReadGroup;
  }
  for (const bool by_portions : {false, true}) {
    by_portions_ = by_portions;
    FakeRecording recording(events);
    const auto add = [&](uint64_t first, uint64_t second) {
      perfdata::Sample sample;
      sample.period = 77;
      sample.read.values = {{first, 1, 0}, {second, 2, 0}, {5, 99, 0}};
      recording.Sample(sample);
    };
    add(1000, 0);
    add(2500, 3);
    add(2500, 10);
    Run(recording);
    // Of the first sample no second event, of the last one only that.
    if (!by_portions) {
      EXPECT_THAT(sink_.periods, ElementsAre(1000, 1500, 3, 7));
    }
    EXPECT_EQ(result_.samples, 4U);
    EXPECT_EQ(counters_.Get("analyze.count_without_event"), 3U);
  }
}

TEST_F(AnalysisTest, EventsWithoutTime) {
  FakeRecording recording({MakeEvent(perfdata::kSampleIp | perfdata::kSampleTid, 1, "e")});
  MapProgram(recording);
  perfdata::Sample sample;
  sample.ip = kBias + 0x1010;
  recording.Sample(sample);
  EXPECT_THAT(Run(recording), ElementsAre(":1: f1000"));
}

TEST_F(AnalysisTest, SamplesWithoutIds) {
  FakeRecording recording({MakeEvent(perfdata::kSampleIp, 1, "e")});
  recording.Sample(perfdata::Sample());
  EXPECT_THAT(Run(recording), ElementsAre(":-1: 0"));
}

TEST_F(AnalysisTest, FiltersByWhatTheSampleSays) {
  FakeRecording recording({MakeEvent(kPlainSample | perfdata::kSampleCpu, 1, "e")});
  recording.Comm(1, 1, "main");
  recording.Comm(1, 2, "worker");
  perfdata::Sample sample;
  sample.pid = 1;
  for (uint32_t i = 1; i <= 4; ++i) {
    sample.tid = i <= 2 ? 1 : 2;
    sample.ip = i;
    sample.cpu = i;
    sample.time = i * 100;
    recording.Sample(sample);
  }
  bytes_ = recording.Take();
  AnalysisOptions options;
  options.filter.tids = {1};
  EXPECT_THAT(RunBytes(options), ElementsAre("main: 1", "main: 2"));
  EXPECT_EQ(result_.filtered, 2U);
  options.filter = {};
  options.filter.comms = {"work*"};
  EXPECT_THAT(RunBytes(options), ElementsAre("worker: 3", "worker: 4"));
  options.filter = {};
  options.filter.cpus = {2, 4};
  EXPECT_THAT(RunBytes(options), ElementsAre("main: 2", "worker: 4"));
  options.filter = {};
  options.filter.time_start = 200;
  options.filter.time_end = 300;
  EXPECT_THAT(RunBytes(options), ElementsAre("main: 2", "worker: 3"));
  options.filter = {};
  options.filter.pids = {9};
  EXPECT_THAT(RunBytes(options), IsEmpty());
}

TEST_F(AnalysisTest, FiltersByFrames) {
  FakeRecording recording;
  MapProgram(recording);
  recording.Chain({kContextUser, kBias + 0x1010, kBias + 0x3010});
  recording.Chain({kContextUser, kBias + 0x2010, 0x99});
  bytes_ = recording.Take();
  AnalysisOptions options;
  options.filter.symbols = {"f3*"};
  EXPECT_THAT(RunBytes(options), ElementsAre(":1: f1000 f3000'"));
  options.filter = {};
  options.filter.dsos = {"prog"};
  EXPECT_THAT(RunBytes(options), SizeIs(2));
  options.filter.dsos = {"[unknown]"};
  EXPECT_THAT(RunBytes(options), ElementsAre(":1: f2000 99'"));
  options.filter.symbols = {"f2000"};
  EXPECT_THAT(RunBytes(options), IsEmpty()) << "one frame must be both";
}

TEST_F(AnalysisTest, BigEndianRecordings) {
  FakeRecording recording({MakeEvent(kChainSample, 1, "e")}, Endian::kBig);
  MapProgram(recording);
  recording.Comm(1, 1, "prog");
  recording.Chain({kContextUser, kBias + 0x1010, kBias + 0x2020});
  EXPECT_THAT(Run(recording), ElementsAre("prog: f1000 f2000'"));
}

TEST_F(AnalysisTest, ASinksFailureEndsIt) {
  FakeRecording recording;
  for (int i = 0; i < 3; ++i) recording.Chain({kContextUser, 0x1000});
  bytes_ = recording.Take();
  MemorySource source(bytes_);
  auto reader = perfdata::Reader::Open(source);
  ASSERT_TRUE(reader);
  Analysis analysis(**reader, files_, *executor_, {});
  sink_.analysis = &analysis;
  sink_.status = Fail(ErrorKind::kIo, "disk full");
  const auto result = analysis.Run(sink_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "disk full");
  EXPECT_THAT(sink_.lines, SizeIs(1));
  MemorySource again(bytes_);
  reader = perfdata::Reader::Open(again);
  Analysis by_portions(**reader, files_, *executor_, {});
  sink_.analysis = &by_portions;
  sink_.by_portions = true;
  EXPECT_EQ(by_portions.Run(sink_).error().message, "disk full");
}

// What was found out about code holds on when a process only gets more data.
TEST_F(AnalysisTest, MapsThatDifferInDataOnlyHaveOneVersion) {
  FakeRecording recording;
  MapProgram(recording);
  recording.Chain({kContextUser, kBias + 0x1010});
  bytes_ = recording.Take();
  MemorySource source(bytes_);
  auto reader = perfdata::Reader::Open(source);
  ASSERT_TRUE(reader);
  Analysis analysis(**reader, files_, *executor_, {});
  sink_.analysis = &analysis;
  ASSERT_TRUE(analysis.Run(sink_));

  const session::AddressSpacePtr before = analysis.session().ProcessOf(1).maps;
  session::Mapping mapping = before->entries().front().value;
  mapping.executable = false;
  auto with_data = std::make_shared<session::AddressSpace>(*before);
  with_data->Assign(Avma(0x7000000), Avma(0x7001000), mapping);
  mapping.executable = true;
  auto with_code = std::make_shared<session::AddressSpace>(*with_data);
  with_code->Assign(Avma(0x8000000), Avma(0x8001000), mapping);

  const auto no_module = [](session::ModuleId) {
    return std::shared_ptr<const unwind::UnwindModule>();
  };
  UnwindMapsCache cache(analysis.session(), no_module);
  const uint64_t version = cache.Get(before)->version;
  EXPECT_EQ(cache.Get(with_data)->version, version);
  ASSERT_EQ(cache.Get(with_data)->mappings.size(), 2U);
  EXPECT_NE(cache.Get(with_code)->version, version);
  ASSERT_EQ(cache.Get(with_code)->mappings.size(), 3U);
  const auto alone = UnwindMapsCache(analysis.session(), no_module).Get(with_code);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(cache.Get(with_code)->mappings[i].bias, alone->mappings[i].bias);
  }
}

TEST(RegistersOfTest, OnlyWhatWasDumped) {
  ByteWriter words;
  for (const uint64_t word : {10, 20, 30}) words.U64(word);
  perfdata::SampledRegs regs;
  regs.mask = (1u << 7) | (1u << 8) | (uint64_t{1} << 40);
  regs.values = perfdata::U64Array(words.view(), Endian::kLittle);
  EXPECT_FALSE(RegistersOf(regs)) << "abi none";
  regs.abi = 2;
  const auto out = RegistersOf(regs);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->valid, (1u << 7) | (1u << 8));
  EXPECT_EQ(out->values[7], 10U);
  EXPECT_EQ(out->values[8], 20U);
}

TEST_F(AnalysisTest, SymbolsOfTheKernelThatComeAndGo) {
  FakeRecording recording;
  recording.Comm(1, 1, "p");
  perfdata::Ksymbol symbol;
  symbol.addr = 0xffffffffc0001000;
  symbol.len = 0x100;
  symbol.ksym_type = 1;
  symbol.name = "bpf_prog_0123456789abcdef_count";
  recording.Add(RecordType::kKsymbol, 0, symbol);
  recording.Chain({kContextKernel, 0xffffffffc0001010}, kKernelMode);
  symbol.flags = 1;
  recording.Add(RecordType::kKsymbol, 0, symbol);
  recording.Chain({kContextKernel, 0xffffffffc0001010}, kKernelMode);
  EXPECT_THAT(Run(recording),
              ElementsAre("p: k:bpf_prog_0123456789abcdef_count", "p: k:ffffffffc0001010"));
}

TEST(ShortModuleName, IsAsPerfShortensIt) {
  using session::ModuleKind;
  const auto name = [](ModuleKind kind, std::string path, uint32_t pid = 0) {
    session::Module module;
    module.key.kind = kind;
    module.key.path = std::move(path);
    module.key.pid = pid;
    return ShortModuleName(module);
  };
  EXPECT_EQ(name(ModuleKind::kFile, "/usr/lib/libc.so.6"), "libc.so.6");
  EXPECT_EQ(name(ModuleKind::kKernel, "[kernel.kallsyms]"), "[kernel.kallsyms]");
  EXPECT_EQ(name(ModuleKind::kKernelModule, "/lib/modules/6.1/kernel/net/nf-tables.ko.xz"),
            "[nf_tables]");
  EXPECT_EQ(name(ModuleKind::kKernelModule, "[nf_tables]"), "[nf_tables]");
  EXPECT_EQ(name(ModuleKind::kKernelModule, "bpf_prog_0123_f"), "bpf_prog_0123_f");
  EXPECT_EQ(name(ModuleKind::kJit, "/tmp/perf-12.map", 12), "[JIT] tid 12");
  EXPECT_EQ(name(ModuleKind::kJit, "/memfd:doublemapper", 12), "memfd:doublemapper");
  EXPECT_EQ(name(ModuleKind::kJitDump, "/tmp/jit-12.dump", 12), "jit-12.dump");
}

TEST_F(AnalysisTest, AddressesOfGuestPrograms) {
  constexpr uint16_t kGuestUser = 5;
  FakeRecording recording;
  perfdata::Mmap2 map;
  map.pid = map.tid = 1;
  map.addr = kBias + 0x1000;
  map.len = 0x4000;
  map.pgoff = TextOffset(files_.elf["/bin/prog"]);
  map.prot = 5;
  map.filename = "/bin/prog";
  recording.Add(RecordType::kMmap2, kGuestUser, map);
  recording.Comm(1, 1, "vm");
  recording.Chain({perfdata::kContextGuestUser, kBias + 0x1010}, kGuestUser);
  recording.Chain({kContextUser, kBias + 0x1010});
  EXPECT_THAT(Run(recording), ElementsAre("vm: f1000", "vm: 555500001010"));
}

}  // namespace
}  // namespace stackreel::analyze
