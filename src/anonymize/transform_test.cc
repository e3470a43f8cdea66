// What becomes of the fields of samples, records, attrs and features.
#include "anonymize/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_leaks.h"
#include "base/byte_writer.h"
#include "perfdata/one_of_each.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using fake::Read;
using fake::Recording;
using fake::SomeEvent;
using perfdata::Mmap2;
using perfdata::RecordType;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint32_t kPid = 10;
constexpr uint64_t kText = 0x555500000000, kKernel = 0xffffffff9a000000;

Bytes WordBytes(std::initializer_list<uint64_t> words, Endian endian = Endian::kLittle) {
  ByteWriter out(endian);
  for (const uint64_t word : words) out.U64(word);
  return out.Take();
}

// A recording with a program and a kernel mapped.
Recording Mapped(std::vector<perfdata::Event> events, perfdata::WriterOptions options = {}) {
  Recording in(std::move(events), options);
  in.Map(kPid, kText, 0x4000, 0, "/bin/prog");
  in.MapKernel(kKernel, 0x1000000, kKernel, "[kernel.kallsyms]_text");
  return in;
}

TEST(Transform, CallchainsChangeTheirModeAtMarkers) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    Recording in = Mapped({SomeEvent(perfdata::kSampleCallchain)}, {.endian = endian});
    const Bytes words =
        WordBytes({perfdata::kContextKernel, kKernel + 1, kKernel + 2, perfdata::kContextUser,
                   kText + 3, kText + 4, perfdata::kContextUserDeferred, kText + 5},
                  endian);
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.ip = kKernel + 1;
    sample.callchain = perfdata::U64Array(words, endian);
    in.AddSample(sample, 1);
    const Read out = fake::Anonymized(in.Finish());
    EXPECT_EQ(out.reader->endian(), endian);
    const uint64_t text = out.All<Mmap2>()[0].addr;
    const uint64_t kernel = out.All<perfdata::Mmap>()[0].addr;
    std::vector<uint64_t> chain;
    for (size_t i = 0; i < out.samples[0].callchain.size(); ++i) {
      chain.push_back(out.samples[0].callchain[i]);
    }
    // The word behind the deferred marker is a cookie, whatever it looks like.
    EXPECT_THAT(
        chain, ElementsAre(perfdata::kContextKernel, kernel + 1, kernel + 2, perfdata::kContextUser,
                           text + 3, text + 4, perfdata::kContextUserDeferred, kText + 5));
    EXPECT_EQ(out.samples[0].ip, kernel + 1);
  }
}

// Chains end as the thread's last one did, and nevertheless become what each becomes alone: after
// exec, in another mode, and outside all mappings too.
TEST(Transform, AChainMovesAsItWouldWithoutThoseBeforeIt) {
  using perfdata::kContextKernel, perfdata::kContextUser, perfdata::kContextUserDeferred;
  constexpr uint64_t kNowhere = 0x7f0000001000;
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    const std::vector<Bytes> chains = {
        WordBytes({kContextUser, kText + 1, kText + 2, kText + 3}, endian),
        WordBytes({kContextUser, kText + 9, kText + 2, kText + 3}, endian),
        WordBytes({kText + 2, kText + 3}, endian),
        WordBytes({kContextKernel, kText + 2, kText + 3}, endian),
        WordBytes({kContextKernel, kKernel + 2, kContextUser, kText + 2, kText + 3}, endian),
        WordBytes({kContextUser, kNowhere, kText + 3}, endian),
        WordBytes({kContextUser, kNowhere + 1, kNowhere, kText + 3}, endian),
        WordBytes({kContextUserDeferred, kText + 2, kText + 3}, endian),
        WordBytes({kContextUser, kText + 4, kContextUserDeferred, kText + 2, kText + 3}, endian),
        WordBytes({kContextUser, kText + 2, kText + 3}, endian)};
    uint64_t outside = 0;
    const auto chains_of = [&](std::optional<size_t> only) {
      Recording in = Mapped({SomeEvent(perfdata::kSampleCallchain)}, {.endian = endian});
      const auto add = [&](size_t i) {
        perfdata::Sample sample;
        sample.pid = sample.tid = kPid;
        sample.callchain = perfdata::U64Array(chains[i % chains.size()], endian);
        in.AddSample(sample);
      };
      for (size_t i = 0; i < chains.size(); ++i) {
        if (!only || *only == i) add(i);
      }
      in.Exec(kPid);
      in.Map(kPid, kText, 0x4000, 0, "/bin/other");
      for (size_t i = chains.size(); i < 2 * chains.size(); ++i) {
        if (!only || *only == i) add(i);
      }
      Report report;
      const Read out = fake::Anonymized(in.Finish(), {}, &report);
      outside = report.counters.Get("anonymize.outside_mappings");
      std::vector<Bytes> moved;
      for (const perfdata::Sample& sample : out.samples) {
        const ByteView bytes = sample.callchain.bytes();
        moved.emplace_back(bytes.begin(), bytes.end());
      }
      return moved;
    };
    const std::vector<Bytes> together = chains_of(std::nullopt);
    const uint64_t outside_together = outside;
    ASSERT_THAT(together, SizeIs(2 * chains.size()));
    uint64_t outside_alone = 0;
    for (size_t i = 0; i < together.size(); ++i) {
      EXPECT_EQ(together[i], chains_of(i).at(0)) << i;
      outside_alone += outside;
    }
    EXPECT_EQ(outside_together, outside_alone);
    EXPECT_NE(together[0], together[chains.size()]);
  }
}

TEST(Transform, DeferredChainsMoveWithTheProcessOfTheirTrailer) {
  Recording in = Mapped({SomeEvent(0)});
  in.Add(RecordType::kCallchainDeferred,
         perfdata::CallchainDeferred{kText, {perfdata::kContextUser, kText + 3, 0}}, 0, kPid);
  const Read out = fake::Anonymized(in.Finish());
  const auto chains = out.All<perfdata::CallchainDeferred>();
  ASSERT_THAT(chains, SizeIs(1));
  EXPECT_EQ(chains[0].cookie, kText);
  EXPECT_THAT(chains[0].ips, ElementsAre(perfdata::kContextUser, out.All<Mmap2>()[0].addr + 3, 0));
}

// The header of such a record may name any mode: that the chain is the user's says its marker only.
TEST(Transform, DeferredChainsAreTheUsersWhateverTheirHeaderSays) {
  constexpr uint16_t kKernelMode = 1;
  Recording in = Mapped({SomeEvent(0)});
  in.Add(RecordType::kCallchainDeferred, perfdata::CallchainDeferred{7, {kText + 3}}, kKernelMode,
         kPid);
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_THAT(out.All<perfdata::CallchainDeferred>()[0].ips,
              ElementsAre(out.All<Mmap2>()[0].addr + 3));
}

// They hold no address, and without them the chains of an arm64 recording cannot be read again.
TEST(Transform, MasksOfPointerAuthenticationStay) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const Level level : {Level::kAddresses, Level::kIdentity}) {
      Recording in = Mapped({SomeEvent(0)}, {.endian = endian});
      in.Add(RecordType::kEventUpdate, perfdata::MakePacMaskUpdate(fake::SomeMask(), endian));
      in.SampleAt(kPid, kText + 1);
      Options options;
      options.level = level;
      const Bytes in_bytes = in.Finish();
      const Bytes out_bytes = fake::AnonymizedBytes(in_bytes, options);
      const auto verdict = fake::VerifyBytes(in_bytes, out_bytes);
      ASSERT_TRUE(verdict);
      EXPECT_TRUE(verdict->clean()) << fake::TextOf(*verdict);
      const Read out(out_bytes);
      std::optional<perfdata::PacMask> mask;
      for (const auto& update : out.All<perfdata::EventUpdate>()) {
        mask = perfdata::PacMaskOf(update, endian);
      }
      ASSERT_TRUE(mask);
      const perfdata::PacMask was = fake::SomeMask();
      EXPECT_EQ(mask->insn_mask, was.insn_mask);
      EXPECT_EQ(mask->data_mask, was.data_mask);
      EXPECT_EQ(mask->enabled_keys, was.enabled_keys);
      EXPECT_EQ(mask->pid == was.pid, level == Level::kAddresses);
      EXPECT_EQ(mask->pid, out.samples[0].pid);
      EXPECT_EQ(mask->time == was.time, level == Level::kAddresses);
      EXPECT_EQ(out.samples[0].time - mask->time, 4 - was.time);
    }
  }
}

// The same where the kernel says them: in a record, and in each sample.
TEST(Transform, TheKernelsMasksOfPointerAuthenticationStay) {
  constexpr uint64_t kMask = 0x007f000000000000, kDataMask = 0x0070000000000000;
  const perfdata::Event event = SomeEvent(perfdata::kSampleArch1);
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    for (const Level level : {Level::kAddresses, Level::kIdentity}) {
      Recording in = Mapped({event}, {.endian = endian});
      in.Add(RecordType::kPtrAuth, perfdata::PtrAuth{kPid, kPid + 1, 0x1d, kMask, kDataMask});
      perfdata::Sample sample;
      sample.pid = kPid;
      sample.tid = kPid + 1;
      sample.ip = kText + 1;
      sample.arch_enabled_keys = 0x1d;
      sample.arch_insn_mask = kMask;
      sample.arch_data_mask = kDataMask;
      in.AddSample(sample);
      Options options;
      options.level = level;
      const Bytes in_bytes = in.Finish();
      const Bytes out_bytes = fake::AnonymizedBytes(in_bytes, options);
      const auto verdict = fake::VerifyBytes(in_bytes, out_bytes);
      ASSERT_TRUE(verdict);
      EXPECT_TRUE(verdict->clean()) << fake::TextOf(*verdict);
      const Read out(out_bytes);
      const auto masks = out.All<perfdata::PtrAuth>();
      ASSERT_THAT(masks, SizeIs(1));
      const perfdata::Sample& written = out.samples.at(0);
      EXPECT_EQ(masks[0], (perfdata::PtrAuth{written.pid, written.tid, 0x1d, kMask, kDataMask}));
      EXPECT_EQ(written.pid == kPid, level == Level::kAddresses);
      EXPECT_EQ(written.arch_enabled_keys, 0x1du);
      EXPECT_EQ(written.arch_insn_mask, kMask);
      EXPECT_EQ(written.arch_data_mask, kDataMask);
      EXPECT_TRUE(out.reader->events().events()[0].attr.Has(perfdata::kAttrPtrAuth));
    }
  }
}

// Of what another kernel may mean by the number nothing is known: it goes.
TEST(Transform, RecordsOfMasksThatWereNotAskedForAreDropped) {
  perfdata::Event event = SomeEvent(0);
  event.attr.flags &= ~uint64_t{perfdata::kAttrPtrAuth};
  Recording in = Mapped({event});
  in.Add(RecordType::kPtrAuth, perfdata::PtrAuth{kPid, kPid, kText + 1, kText + 2, kText + 3});
  const Read out = fake::Anonymized(in.Finish());
  EXPECT_THAT(out.All<Mmap2>(), SizeIs(1)) << "the others stay";
  for (const perfdata::Record& record : out.records) {
    EXPECT_NE(record.type, static_cast<uint32_t>(RecordType::kPtrAuth));
  }
}

TEST(Transform, BranchesMoveAndKeepTheirFlags) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    Recording in = Mapped({SomeEvent(perfdata::kSampleBranchStack)}, {.endian = endian});
    const uint64_t flags = 0x123451;
    const Bytes words =
        WordBytes({kText + 1, kText + 2,
                   endian == Endian::kBig ? perfdata::BranchFlagsToBigEndian(flags) : flags,
                   kKernel + 3, kText + 4, 0},
                  endian);
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.branches = perfdata::BranchArray(words, endian);
    in.AddSample(sample);
    const Read out = fake::Anonymized(in.Finish());
    const uint64_t text = out.All<Mmap2>()[0].addr;
    const uint64_t kernel = out.All<perfdata::Mmap>()[0].addr;
    const perfdata::BranchArray branches = out.samples[0].branches;
    ASSERT_EQ(branches.size(), 2);
    EXPECT_EQ(branches[0].from, text + 1);
    EXPECT_EQ(branches[0].to, text + 2);
    EXPECT_EQ(branches[0].flags, flags);
    EXPECT_EQ(branches[1].from, kernel + 3);
    EXPECT_EQ(branches[1].to, text + 4);
  }
}

// Sample fields of these classes go, and the attr no longer says that they are there.
TEST(Transform, PayloadRegistersAndPhysicalAddressesGoTheSampleStays) {
  constexpr uint64_t kGone = perfdata::kSampleRaw | perfdata::kSampleRegsUser |
                             perfdata::kSampleStackUser | perfdata::kSampleRegsIntr |
                             perfdata::kSamplePhysAddr | perfdata::kSampleAux;
  EXPECT_EQ(DroppedSampleBits(Level::kAddresses), kGone);
  perfdata::Event event =
      SomeEvent(kGone | perfdata::kSampleCgroup | perfdata::kSamplePeriod | perfdata::kSampleCpu);
  event.attr.sample_regs_user = event.attr.sample_regs_intr = 3;
  event.attr.sample_stack_user = 16;
  Recording in = Mapped({event, SomeEvent(perfdata::kSamplePeriod, 101)});
  const Bytes secret = WordBytes({0x5ec2e7d474, 0x5ec2e7d474});
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = kText + 1;
  sample.cpu = 3;
  sample.period = 77;
  sample.cgroup = 5;
  sample.raw = ByteView(secret).first(12);
  sample.regs_user.abi = 2;
  sample.regs_user.mask = 3;
  sample.regs_user.values = perfdata::U64Array(secret, Endian::kLittle);
  sample.regs_intr = sample.regs_user;
  sample.stack_user = secret;
  sample.stack_user_size = 16;
  sample.phys_addr = 0x5ec2e7d474;
  sample.aux = secret;
  in.AddSample(sample);
  perfdata::Sample other;
  other.period = 78;
  in.AddSample(other, 2, 1);
  const Bytes bytes = fake::AnonymizedBytes(in.Finish());
  const Read out(bytes);
  const perfdata::Attr& attr = out.reader->events().events()[0].attr;
  EXPECT_EQ(attr.sample_type & kGone, 0);
  EXPECT_EQ(attr.sample_regs_user | attr.sample_regs_intr | attr.sample_stack_user, 0);
  ASSERT_THAT(out.samples, SizeIs(2));
  EXPECT_EQ(out.samples[0].period, 77);
  EXPECT_EQ(out.samples[0].cpu, 3);
  EXPECT_EQ(out.samples[0].cgroup, 5);
  EXPECT_EQ(out.samples[1].period, 78);
  EXPECT_EQ(out.samples[1].id, 101);
  const std::string_view text = AsText(bytes);
  EXPECT_EQ(text.find(AsText(ByteView(secret).first(5))), std::string_view::npos);
}

TEST(Transform, BreakpointAddressesAreHiddenWhereverTheyStand) {
  perfdata::Event event = SomeEvent(0);
  event.attr.type = perfdata::kTypeBreakpoint;
  event.attr.config1 = 0x7f1234567890;  // in no mapping
  event.attr.config2 = 8;
  event.name = "mem:0x7f1234567890:rw";
  perfdata::Event mapped = SomeEvent(0, 101);
  mapped.attr.type = perfdata::kTypeBreakpoint;
  mapped.attr.config1 = kText + 0x10;
  mapped.name = "mem:0x555500000010:x";
  Recording in = Mapped({event, mapped});
  const std::vector<std::string> cmdline = {"perf", "record", "-e", "mem:0x7f1234567890:rw",
                                            "--filter=0x1234"};
  const Bytes bytes =
      fake::AnonymizedBytes(in.Finish({{static_cast<uint32_t>(perfdata::Feature::kCmdline),
                                        perfdata::EncodeStringList(cmdline, Endian::kLittle)}}));
  const Read out(bytes);
  const auto& events = out.reader->events().events();
  EXPECT_NE(events[0].attr.config1, event.attr.config1);
  EXPECT_NE(events[0].attr.config1, 0);
  EXPECT_EQ(events[0].attr.config2, 8);
  EXPECT_EQ(events[1].attr.config1, out.All<Mmap2>()[0].addr + 0x10);
  EXPECT_EQ(events[0].name.find("7f1234567890"), std::string::npos);
  EXPECT_NE(events[1].name, mapped.name);
  EXPECT_EQ(out.reader->features().event_desc[0].attr.config1, events[0].attr.config1);
  EXPECT_EQ(AsText(bytes).find("7f1234567890"), std::string_view::npos);
  EXPECT_EQ(out.reader->features().cmdline[3], events[0].name);
  EXPECT_EQ(out.reader->features().cmdline[4], "--filter=0x1234");
}

TEST(Transform, WhatIsAProbeTheRecordingSays) {
  perfdata::Attr attr;
  perfdata::Features features;
  features.pmu_names = {{6, "kprobe"}, {7, "uprobe"}, {8, "intel_pt"}};
  const auto kind = [&](uint32_t type) {
    attr.type = type;
    return KindOfEvent(attr, features);
  };
  EXPECT_EQ(kind(perfdata::kTypeTracepoint), EventKind::kPlain);
  EXPECT_EQ(kind(perfdata::kTypeRaw), EventKind::kPlain);
  EXPECT_EQ(kind(perfdata::kTypeBreakpoint), EventKind::kBreakpoint);
  EXPECT_EQ(kind(6), EventKind::kProbe);
  EXPECT_EQ(kind(7), EventKind::kProbe);
  EXPECT_EQ(kind(8), EventKind::kPlain);
  EXPECT_EQ(kind(9), EventKind::kUnknown);
}

TEST(Transform, ProbesLoseTheirPointers) {
  perfdata::Event event = SomeEvent(0);
  event.attr.type = 6;
  event.attr.config = 1;
  event.attr.config1 = 0x5599aabbccdd;
  event.attr.config2 = 0xffffffff9a001234;
  event.attr.sig_data = 0x5599aabbccdd;
  event.attr.tail = {1, 2, 3, 4, 5, 6, 7, 8};
  Recording in = Mapped({event});
  const Read out = fake::Anonymized(in.Finish());
  const perfdata::Attr& attr = out.reader->events().events()[0].attr;
  EXPECT_EQ(attr.config, 1);
  EXPECT_EQ(attr.config1 | attr.config2 | attr.sig_data, 0);
  EXPECT_THAT(attr.tail, IsEmpty());
}

// A record whose content may be anything goes as a whole, and is told of.
TEST(Transform, PayloadRecordsAndUnknownOnesGo) {
  Recording in = Mapped({SomeEvent(0)});
  in.Add(RecordType::kTextPoke, perfdata::TextPoke{kKernel, {1, 2, 3}, {4}});
  in.Add(static_cast<RecordType>(300), perfdata::Opaque{{9, 9, 9}});
  in.Add(RecordType::kAuxtraceInfo, perfdata::AuxtraceInfo{1, 0, {5, 6, 7}});
  in.SampleAt(kPid, kText);
  Report report;
  const perfdata::AuxtraceIndex index{{{0x5000, 0x100}}};  // where AUXTRACE records were
  const Read out = fake::Anonymized(in.Finish({{40, {1, 2, 3}},
                                               {static_cast<uint32_t>(perfdata::Feature::kAuxtrace),
                                                perfdata::EncodeFeature(index, Endian::kLittle)}}),
                                    {}, &report);
  EXPECT_THAT(out.samples, SizeIs(1));
  EXPECT_THAT(out.All<perfdata::TextPoke>(), IsEmpty());
  EXPECT_THAT(out.All<perfdata::Opaque>(), IsEmpty());
  EXPECT_THAT(out.All<perfdata::AuxtraceInfo>(), IsEmpty());
  EXPECT_FALSE(out.reader->features().raw.contains(40));
  std::vector<std::pair<std::string, std::string>> dropped;
  for (const auto& [name, count] : report.dropped()) dropped.push_back(name);
  EXPECT_THAT(dropped, testing::UnorderedElementsAre(
                           std::pair("AUXTRACE_INFO", "payload"), std::pair("TEXT_POKE", "payload"),
                           std::pair("TYPE_300", "unknown"),
                           std::pair("feature AUXTRACE", "index of payload"),
                           std::pair("feature FEATURE_40", "payload")));
}

// Every kind of record there is passes, or is dropped for a reason; nothing fails.
TEST(Transform, TakesEveryKindOfRecord) {
  for (const Endian endian : {Endian::kLittle, Endian::kBig}) {
    perfdata::Event event = SomeEvent(0);
    Recording in = Mapped({event}, {.endian = endian});
    size_t given = 0;
    for (const auto& records :
         {perfdata::one_of_each::KernelRecords(), perfdata::one_of_each::UserRecords()}) {
      for (const perfdata::Record& record : records) {
        if (record.type == static_cast<uint32_t>(RecordType::kAuxtrace)) continue;  // needs bytes
        std::visit(
            [&](const auto& body) {
              in.Add(static_cast<RecordType>(record.type), body, record.misc, kPid);
            },
            record.body);
        ++given;
      }
    }
    Report report;
    const Read out = fake::Anonymized(in.Finish(), {}, &report);
    uint64_t dropped = 0;
    for (const auto& [name, count] : report.dropped()) dropped += count.count;
    // HEADER_ATTR, _EVENT_TYPE, _TRACING_DATA, _FEATURE and a name: the Writer's to write.
    constexpr size_t kWriters = 5;
    EXPECT_GE(out.records.size() + dropped + kWriters, given);
    EXPECT_EQ(report.counters.Get("anonymize.bad_record"), 0);
  }
}

TEST(Transform, PipesBecomeFilesAndFilesPipes) {
  for (const auto from : {perfdata::Container::kFile, perfdata::Container::kPipe}) {
    for (const auto to : {perfdata::Container::kFile, perfdata::Container::kPipe}) {
      Recording in =
          Mapped({SomeEvent(0), SomeEvent(perfdata::kSampleAddr, 101)}, {.container = from});
      in.SampleAt(kPid, kText + 1);
      perfdata::Sample sample;
      sample.pid = kPid;
      sample.addr = kText + 2;
      in.AddSample(sample, 2, 1);
      const Bytes bytes = in.Finish({{static_cast<uint32_t>(perfdata::Feature::kHostname),
                                      perfdata::EncodeString("host", Endian::kLittle)}});
      Options options;
      options.container = to;
      const Read out = fake::Anonymized(bytes, options);
      EXPECT_EQ(out.reader->container(), to);
      EXPECT_THAT(out.reader->events().events(), SizeIs(2));
      EXPECT_EQ(out.reader->features().hostname, "host");
      ASSERT_THAT(out.samples, SizeIs(2));
      EXPECT_EQ(out.samples[0].ip, out.All<Mmap2>()[0].addr + 1);
      EXPECT_EQ(out.samples[1].addr, out.All<Mmap2>()[0].addr + 2);
    }
  }
}

TEST(Transform, ADamagedRecordingGivesAnError) {
  Recording in = Mapped({SomeEvent(0)});
  for (int i = 0; i < 10; ++i) in.SampleAt(kPid, kText + 1);
  Bytes bytes = in.Finish();
  bytes.resize(bytes.size() / 2);
  MemorySource source(bytes);
  MemorySink sink;
  const auto outcome = Anonymize(RereadableRecording(source), sink, fake::SomeKey(), {});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::kDamaged);
  EXPECT_EQ(outcome.error().file, "memory");
}

TEST(Transform, OfADamagedRecordingThePartThatCanBeReadIsSalvaged) {
  Recording in = Mapped({SomeEvent(0)});
  for (int i = 0; i < 100; ++i) in.SampleAt(kPid, kText + 1);
  Bytes bytes = in.Finish();
  bytes.resize(bytes.size() * 2 / 3);
  MemorySource source(bytes);
  MemorySink sink;
  Options options;
  options.salvage = true;
  const auto outcome = Anonymize(RereadableRecording(source), sink, fake::SomeKey(), options);
  ASSERT_TRUE(outcome) << outcome.error().ToString();
  EXPECT_FALSE(outcome->read.complete);
  ASSERT_TRUE(outcome->read.damage);
  EXPECT_GT(outcome->samples, 0);
  const Read out(sink.bytes());
  EXPECT_THAT(out.samples, SizeIs(outcome->samples));
  EXPECT_EQ(out.samples[0].ip, out.All<Mmap2>()[0].addr + 1);
}

// Records that are shorter than their fields.
TEST(Transform, ARecordThatIsTooShortIsAnErrorOrSalvagedPast) {
  for (const RecordType type : {RecordType::kMmap2, RecordType::kSample, RecordType::kComm}) {
    Recording in = Mapped({SomeEvent(0)});
    in.SampleAt(kPid, kText + 1);
    ByteWriter record(Endian::kLittle);
    record.U32(static_cast<uint32_t>(type));
    record.U16(2);
    record.U16(32);
    record.U64(100);  // the sample's id
    record.U64(kText);
    record.U64(100);  // the trailer's
    in.AddBytes(record.view());
    in.SampleAt(kPid, kText + 2);
    const Bytes bytes = in.Finish();
    MemorySource source(bytes);
    MemorySink sink;
    const auto failed = Anonymize(RereadableRecording(source), sink, fake::SomeKey(), {});
    ASSERT_FALSE(failed) << perfdata::RecordTypeName(static_cast<uint32_t>(type));
    EXPECT_EQ(failed.error().kind, ErrorKind::kDamaged);
    EXPECT_TRUE(failed.error().offset);
    EXPECT_THAT(failed.error().cure, testing::HasSubstr("--salvage"));

    Options options;
    options.salvage = true;
    MemorySink salvaged;
    const auto outcome = Anonymize(RereadableRecording(source), salvaged, fake::SomeKey(), options);
    ASSERT_TRUE(outcome) << outcome.error().ToString();
    EXPECT_EQ(outcome->bad_records, 1);
    EXPECT_THAT(Read(salvaged.bytes()).samples, SizeIs(2));
  }
}

// Of every kind that has fields: nothing passes in silence.
TEST(Transform, ARecordWithoutItsFieldsIsAnErrorOrCounted) {
  std::vector<perfdata::Record> all = perfdata::one_of_each::KernelRecords();
  for (perfdata::Record& record : perfdata::one_of_each::UserRecords()) {
    all.push_back(std::move(record));
  }
  for (const perfdata::Record& some : all) {
    const std::string name = perfdata::RecordTypeName(some.type);
    const auto type = static_cast<RecordType>(some.type);
    if (type == RecordType::kFinishedRound || type == RecordType::kFinishedInit) continue;
    // The writer does not let it through.
    if (type == RecordType::kAuxtrace || type == RecordType::kHeaderTracingData) continue;
    Recording in = Mapped({SomeEvent(0)});
    in.SampleAt(kPid, kText + 1);
    ByteWriter record(Endian::kLittle);
    record.U32(some.type);
    record.U16(some.misc);
    record.U16(12);
    record.U32(0xffffffff);
    in.AddBytes(record.view());
    const Bytes bytes = in.Finish();
    MemorySource source(bytes);
    Options options;
    for (const bool salvage : {false, true}) {
      options.salvage = salvage;
      MemorySink sink;
      const auto outcome = Anonymize(RereadableRecording(source), sink, fake::SomeKey(), options);
      EXPECT_TRUE(outcome || !salvage) << name;
      if (!outcome) continue;
      const uint64_t counted = outcome->bad_records + outcome->report.dropped().size() +
                               outcome->report.counters.Get("perfdata.bad_record");
      EXPECT_TRUE(counted > 0 || outcome->read.damage) << name;
      VerifyOptions verify;
      verify.salvaged = salvage;
      const auto verdict = fake::VerifyBytes(bytes, sink.bytes(), verify);
      ASSERT_TRUE(verdict) << name;
      EXPECT_TRUE(verdict->clean()) << name << fake::TextOf(*verdict);
    }
  }
}

TEST(Transform, WhatComesOutIsMarked) {
  Recording in = Mapped({SomeEvent(0)});
  const Bytes bytes = in.Finish();
  EXPECT_FALSE(Read(bytes).reader->features().anonymized);
  EXPECT_TRUE(fake::Anonymized(bytes).reader->features().anonymized);
  Options to_pipe;
  to_pipe.container = perfdata::Container::kPipe;
  EXPECT_TRUE(fake::Anonymized(bytes, to_pipe).reader->features().anonymized);
}

TEST(Transform, WhatWasCompressedIsCompressed) {
  Recording in = Mapped({SomeEvent(0)}, {.compression_level = 3});
  for (uint64_t i = 0; i < 2'000; ++i) in.SampleAt(kPid, kText + i);
  const Bytes bytes = in.Finish();
  for (const auto container : {perfdata::Container::kFile, perfdata::Container::kPipe}) {
    Options options;
    options.container = container;
    const Bytes out = fake::AnonymizedBytes(bytes, options);
    EXPECT_LT(out.size(), 2'000 * 40 / 2);
    const Read read(out);
    EXPECT_THAT(read.samples, SizeIs(2'000));
    ASSERT_TRUE(read.reader->features().compressed);
    EXPECT_EQ(read.reader->features().compressed->level, 3);
    EXPECT_EQ(read.samples[1'999].ip, read.All<Mmap2>()[0].addr + 1'999);
  }
}

}  // namespace
}  // namespace stackreel::anonymize
