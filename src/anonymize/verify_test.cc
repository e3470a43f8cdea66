// Leaks on purpose: each rule of the transform left out, and the verifier must see it.
#include "anonymize/verify.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "anonymize/fake_recording.h"
#include "anonymize/verify_record.h"
#include "anonymize/verify_samples.h"
#include "base/byte_writer.h"
#include "perfdata/feature_layout.h"
#include "perfdata/one_of_each.h"

namespace stackreel::anonymize {
namespace {

using fake::Bytes;
using fake::Recording;
using fake::SomeEvent;
using perfdata::Container;
using perfdata::Feature;
using perfdata::RecordType;

constexpr uint32_t kPid = 10;

Result<Verdict> VerifyBytes(const Bytes& in, const Bytes& out, const VerifyOptions& options = {}) {
  MemorySource in_source(in), out_source(out);
  return Verify(RereadableRecording(in_source), RereadableRecording(out_source), options);
}

std::string TextOf(const Verdict& verdict) {
  std::string text;
  for (const Finding& f : verdict.findings) {
    text += fmt::format("({}) {} {} {:#x}+{:#x} {}\n", static_cast<char>(f.kind), f.record, f.field,
                        f.file_offset, f.offset, f.value);
  }
  return text;
}

// Where things lie in a made-up recording: another one of the same with other places is what a
// transform should make of it.
struct Places {
  uint64_t text = 0x555500000000, libc = 0x7f0000a00000, heap = 0x555500800000;
  uint64_t kernel = 0xffffffff9a000000, module = 0xffffffffc0100000, outside = 0x7ffd00001000;
};
constexpr Places kMoved = {0x123456789000,     0x234567890000,     0x1abcdef00000,
                           0xffff900012300000, 0xffffb00012300000, 0x200000001000};

// What is to be wrong.
struct Leak {
  std::function<void(perfdata::Event&)> event = [](perfdata::Event&) {};
  std::function<void(perfdata::Sample&)> sample = [](perfdata::Sample&) {};
  std::function<void(Recording&)> more = [](Recording&) {};
  std::map<uint32_t, Bytes> features = {};
};

Bytes Words(std::initializer_list<uint64_t> words, Endian endian) {
  ByteWriter out(endian);
  for (const uint64_t word : words) out.U64(word);
  return out.Take();
}

// Three samples of a program, a library and a kernel.
Bytes Make(const Places& at, const perfdata::WriterOptions& options, const Leak& leak = {}) {
  perfdata::Event event = SomeEvent(perfdata::kSampleAddr | perfdata::kSamplePeriod |
                                    perfdata::kSampleCallchain | perfdata::kSampleBranchStack);
  leak.event(event);
  Recording out({event, SomeEvent(perfdata::kSamplePeriod, 101)}, options);
  out.MapKernel(at.kernel, 0x1000000, at.kernel, "[kernel.kallsyms]_text");
  out.MapKernel(at.module, 0x5000, 0, "[some_module]");
  out.Map(kPid, at.text, 0x4000, 0, "/bin/prog");
  out.Map(kPid, at.libc, 0x200000, 0x28000, "/lib/libc.so.6");
  out.Map(kPid, at.heap, 0x21000, at.heap, "[heap]");
  out.Add(RecordType::kKsymbol, perfdata::Ksymbol{at.module + 0x8000, 0x100, 1, 0, "bpf_prog"}, 1);
  for (uint64_t i = 1; i <= 3; ++i) {
    const Endian endian = options.endian;
    const Bytes chain = Words({perfdata::kContextKernel, at.kernel + i, perfdata::kContextUser,
                               at.text + i, at.libc + 0x200000, at.outside + i},
                              endian);
    const Bytes branches = Words({at.text + i, at.libc + i, 0}, endian);
    perfdata::Sample sample;
    sample.pid = sample.tid = kPid;
    sample.ip = at.text + i;
    sample.addr = at.heap + 0x800 + i;
    sample.period = 1000 + i;
    sample.callchain = perfdata::U64Array(chain, endian);
    sample.branches = perfdata::BranchArray(branches, endian);
    leak.sample(sample);
    out.AddSample(sample, 2);
  }
  leak.more(out);
  std::map<uint32_t, Bytes> features = leak.features;
  features.try_emplace(static_cast<uint32_t>(Feature::kHostname),
                       perfdata::EncodeString("sekrithost", options.endian));
  return out.Finish(features);
}

// A recording of everything there is, as `one_of_each` has it.
Bytes Everything(const perfdata::WriterOptions& options) {
  Recording in({SomeEvent(perfdata::kSampleAddr | perfdata::kSamplePeriod | perfdata::kSampleCpu |
                          perfdata::kSampleCallchain | perfdata::kSampleWeight)},
               options);
  in.Map(kPid, Places().text, 0x4000, 0, "/bin/prog");
  in.MapKernel(Places().kernel, 0x1000000, Places().kernel, "[kernel.kallsyms]_text");
  for (const auto& records :
       {perfdata::one_of_each::KernelRecords(), perfdata::one_of_each::UserRecords()}) {
    for (const perfdata::Record& record : records) {
      const auto type = static_cast<RecordType>(record.type);
      if (type == RecordType::kAuxtrace || type == RecordType::kHeaderAttr) continue;
      std::visit([&](const auto& body) { in.Add(type, body, record.misc, kPid); }, record.body);
    }
  }
  const Bytes chain = Words({Places().text + 1, Places().text + 2}, options.endian);
  perfdata::Sample sample;
  sample.pid = kPid;
  sample.ip = Places().text + 1;
  sample.callchain = perfdata::U64Array(chain, options.endian);
  in.AddSample(sample);
  const std::vector<perfdata::HeaderBuildId> ids = {
      {-1, perfdata::one_of_each::SomeBuildId(), "/bin/prog"}};
  return in.Finish(
      {{static_cast<uint32_t>(Feature::kCmdline),
        perfdata::EncodeStringList({"perf", "record", "a word of some length"}, options.endian)},
       {static_cast<uint32_t>(Feature::kBuildId),
        *perfdata::EncodeBuildIds(ids, {0}, options.endian)}});
}

class VerifyEach : public testing::TestWithParam<std::tuple<Endian, Container>> {
 protected:
  [[nodiscard]] perfdata::WriterOptions options() const {
    return {std::get<1>(GetParam()), std::get<0>(GetParam()), 0};
  }
  [[nodiscard]] Endian endian() const { return std::get<0>(GetParam()); }
  // What is found where OUT leaks so; IN has `also` besides.
  [[nodiscard]] Verdict Of(const Leak& leak, const Leak& also = {},
                           const VerifyOptions& verify = {}) const {
    const auto verdict =
        VerifyBytes(Make({}, options(), also), Make(kMoved, options(), leak), verify);
    EXPECT_TRUE(verdict) << (verdict ? "" : verdict.error().ToString());
    return verdict.value_or(Verdict());
  }
  static bool Has(const Verdict& verdict, FindingKind kind, std::string_view record,
                  std::string_view field) {
    return std::ranges::any_of(verdict.findings, [&](const Finding& f) {
      return f.kind == kind && f.record == record && f.field == field;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, VerifyEach,
                         testing::Combine(testing::Values(Endian::kLittle, Endian::kBig),
                                          testing::Values(Container::kFile, Container::kPipe)));

TEST_P(VerifyEach, WhatMovedIsClean) {
  const Verdict verdict = Of({});
  EXPECT_TRUE(verdict.clean()) << TextOf(verdict);
  EXPECT_EQ(verdict.samples, 3);
  EXPECT_EQ(verdict.mappings, 6);
  EXPECT_GT(verdict.bytes, 500);
}

TEST_P(VerifyEach, WhatDidNotMoveIsFound) {
  const Bytes in = Make({}, options());
  const auto verdict = VerifyBytes(in, in);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(Has(*verdict, FindingKind::kOriginalValue, "MMAP", "addr"));
  EXPECT_TRUE(Has(*verdict, FindingKind::kOriginalValue, "SAMPLE", "ip"));
}

// Each kind of mapping left where it was.
TEST_P(VerifyEach, OneMappingThatStaysIsFound) {
  for (uint64_t Places::* place :
       {&Places::text, &Places::libc, &Places::heap, &Places::kernel, &Places::module}) {
    Places some = kMoved;
    some.*place = Places().*place;
    const auto verdict = VerifyBytes(Make({}, options()), Make(some, options()));
    ASSERT_TRUE(verdict);
    EXPECT_TRUE(Has(*verdict, FindingKind::kOriginalValue, "MMAP", "addr")) << TextOf(*verdict);
  }
}

TEST_P(VerifyEach, AnAddressNowhereIsFound) {
  using perfdata::Sample;
  const uint64_t nowhere = 0x345678901234;
  const auto has = [&](const std::function<void(Sample&)>& leak, std::string_view field) {
    const Verdict verdict = Of({.sample = leak});
    return Has(verdict, FindingKind::kAddressOutside, "SAMPLE", field);
  };
  EXPECT_TRUE(has([&](Sample& s) { s.ip = nowhere; }, "ip"));
  EXPECT_TRUE(has([&](Sample& s) { s.addr = nowhere; }, "addr"));
  // The marker says that a cookie follows; behind it is an address again.
  const Bytes deferred = Words({perfdata::kContextUserDeferred, nowhere}, endian());
  EXPECT_FALSE(
      has([&](Sample& s) { s.callchain = perfdata::U64Array(deferred, endian()); }, "callchain"));
  const Bytes behind = Words({perfdata::kContextUserDeferred, nowhere, nowhere}, endian());
  EXPECT_TRUE(
      has([&](Sample& s) { s.callchain = perfdata::U64Array(behind, endian()); }, "callchain"));
  for (const auto& words : {Words({nowhere, 0, 0}, endian()), Words({0, nowhere, 0}, endian())}) {
    EXPECT_TRUE(
        has([&](Sample& s) { s.branches = perfdata::BranchArray(words, endian()); }, "branches"));
  }
  const auto chain = perfdata::CallchainDeferred{7, {perfdata::kContextUser, nowhere}};
  const Leak more = {.more = [&](Recording& r) { r.Add(RecordType::kCallchainDeferred, chain); }};
  EXPECT_TRUE(Has(Of(more, more), FindingKind::kAddressOutside, "CALLCHAIN_DEFERRED", "ips"));
}

// One byte behind a mapping is where a call that is its last instruction returns to; two are not.
TEST_P(VerifyEach, BehindAMappingIsOneByte) {
  const auto ip = [this](uint64_t address) {
    return Of({.sample = [=](perfdata::Sample& s) { s.ip = address; }});
  };
  EXPECT_TRUE(ip(kMoved.text + 0x4000).clean());
  EXPECT_FALSE(ip(kMoved.text + 0x4001).clean());
}

TEST_P(VerifyEach, PayloadOfSamplesIsFound) {
  const Bytes bytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const auto of = [&](uint64_t bits, const std::function<void(perfdata::Sample&)>& sample,
                      std::string_view field) {
    const Leak leak = {.event =
                           [=](perfdata::Event& event) {
                             event.attr.sample_type |= bits;
                             event.attr.sample_regs_user = event.attr.sample_regs_intr = 1;
                             event.attr.sample_stack_user = 8;
                           },
                       .sample = sample};
    const Verdict verdict = Of(leak, leak);
    EXPECT_TRUE(Has(verdict, FindingKind::kEventConfig, "attr", "sample_type"));
    return Has(verdict, FindingKind::kPayload, "SAMPLE", field);
  };
  perfdata::SampledRegs regs;
  const Bytes word = Words({0x1122334455667788}, endian());
  regs.abi = 2;
  regs.mask = 1;
  regs.values = perfdata::U64Array(word, endian());
  EXPECT_TRUE(of(perfdata::kSampleRaw, [&](auto& s) { s.raw = bytes; }, "raw"));
  EXPECT_TRUE(of(perfdata::kSampleRegsUser, [&](auto& s) { s.regs_user = regs; }, "regs_user"));
  EXPECT_TRUE(of(perfdata::kSampleRegsIntr, [&](auto& s) { s.regs_intr = regs; }, "regs_intr"));
  EXPECT_TRUE(of(
      perfdata::kSampleStackUser,
      [&](auto& s) {
        s.stack_user = ByteView(bytes).first(8);
        s.stack_user_size = 8;
      },
      "stack_user"));
  EXPECT_TRUE(of(perfdata::kSamplePhysAddr, [](auto& s) { s.phys_addr = 0x1234000; }, "phys_addr"));
  EXPECT_TRUE(of(perfdata::kSampleAux, [&](auto& s) { s.aux = ByteView(bytes).first(8); }, "aux"));
}

TEST_P(VerifyEach, PayloadOfRecordsIsFound) {
  const auto of = [&](RecordType type, auto body, std::string_view record, std::string_view field) {
    const Leak leak = {.more = [&](Recording& r) { r.Add(type, body, 1); }};
    return Has(Of(leak, leak), FindingKind::kPayload, record, field);
  };
  EXPECT_TRUE(of(RecordType::kTextPoke, perfdata::TextPoke{kMoved.kernel, {1, 2}, {3}}, "TEXT_POKE",
                 "old_bytes"));
  EXPECT_TRUE(
      of(RecordType::kAuxtraceInfo, perfdata::AuxtraceInfo{1, 0, {5}}, "AUXTRACE_INFO", "priv"));
  EXPECT_TRUE(of(static_cast<RecordType>(300), perfdata::Opaque{{9, 9, 9, 9, 9, 9, 9, 9}},
                 "TYPE_300", "payload"));
  perfdata::BpfMetadata metadata{"prog", {{"key", "value"}}};
  EXPECT_TRUE(of(RecordType::kBpfMetadata, metadata, "BPF_METADATA", "value"));
}

TEST_P(VerifyEach, PayloadOfFeaturesIsFound) {
  const auto of = [&](Feature feature, const Bytes& bytes) {
    Leak leak;
    leak.features[static_cast<uint32_t>(feature)] = bytes;
    const Verdict verdict = Of(leak, leak);
    return std::ranges::any_of(verdict.findings,
                               [](const Finding& f) { return f.kind == FindingKind::kPayload; });
  };
  const auto encode = [&](const auto& body) { return perfdata::EncodeFeature(body, endian()); };
  EXPECT_TRUE(of(Feature::kTracingData, {23, 8, 68, 't', 'r', 'a', 'c', 'i'}));
  EXPECT_TRUE(of(Feature::kBpfProgInfo, encode(perfdata::BpfProgInfos{{{1, {1, 2}, {3}}}})));
  EXPECT_TRUE(of(Feature::kBpfBtf, encode(perfdata::BtfBlobs{{{1, {1, 2, 3}}}})));
  EXPECT_TRUE(of(static_cast<Feature>(40), {1, 2, 3, 4, 5, 6, 7, 8}));
}

// TRACING_DATA with one format and `rest` behind the formats.
Bytes TracingData(Endian endian, std::initializer_list<std::string_view> parts) {
  ByteWriter out(endian);
  out.Text("\x17\x08\x44tracing0.6");
  out.U8(0);
  out.U8(endian == Endian::kBig ? 1 : 0);
  out.U8(8);
  out.U32(4096);
  for (const std::string_view head : {"header_page", "header_event"}) {
    out.Text(head);
    out.U8(0);
    out.U64(4);
    out.Text("text");
  }
  out.U32(0);
  out.U32(1);
  out.Text("sched");
  out.U8(0);
  out.U32(1);
  const std::string_view format = "name: sched_switch\nID: 5\n";
  out.U64(format.size());
  out.Text(format);
  size_t number = 0;
  for (const std::string_view part : parts) {
    if (number++ < 2) {
      out.U32(static_cast<uint32_t>(part.size()));
    } else {
      out.U64(part.size());
    }
    out.Text(part);
  }
  return out.Take();
}

TEST_P(VerifyEach, OfTracingDataFormatsMayStay) {
  const auto found = [&](const Bytes& bytes) {
    Leak leak;
    leak.features[static_cast<uint32_t>(Feature::kTracingData)] = bytes;
    const Verdict verdict = Of(leak, leak);
    std::vector<std::string> values;
    for (const Finding& f : verdict.findings) {
      EXPECT_EQ(f.kind, FindingKind::kPayload);
      values.push_back(f.value);
    }
    return values;
  };
  using testing::ElementsAre;
  EXPECT_THAT(found(TracingData(endian(), {"", "", ""})), testing::IsEmpty());
  EXPECT_THAT(found(TracingData(endian(), {"", ""})), testing::IsEmpty());
  EXPECT_THAT(found(TracingData(endian(), {"81 T a\n", "", ""})),
              ElementsAre("7 bytes of kallsyms"));
  EXPECT_THAT(found(TracingData(endian(), {"", "0x81 : \"a\"", ""})),
              ElementsAre("10 bytes of printk_formats"));
  EXPECT_THAT(found(TracingData(endian(), {"", "", "1 init"})),
              ElementsAre(testing::EndsWith(" bytes behind its formats")));
  EXPECT_THAT(found(TracingData(endian(), {})), ElementsAre("it ends amid its formats"));
}

TEST_P(VerifyEach, RawDataMayBeKeptButIsSearched) {
  const auto of = [&](uint64_t value, bool keeps_raw) {
    const Bytes raw = Words({5, value}, endian());
    const Leak leak = {.event =
                           [](perfdata::Event& event) {
                             event.attr.type = perfdata::kTypeTracepoint;
                             event.attr.sample_type |= perfdata::kSampleRaw;
                           },
                       .sample = [&](perfdata::Sample& s) { s.raw = ByteView(raw).first(12); }};
    VerifyOptions verify;
    verify.keeps_raw = keeps_raw;
    return Of(leak, leak, verify);
  };
  EXPECT_TRUE(of(7, true).clean()) << TextOf(of(7, true));
  EXPECT_FALSE(of(7, false).clean());
  const Bytes raw = Words({Places().text + 8, 0}, endian());
  const Leak leak = {.event =
                         [](perfdata::Event& event) {
                           event.attr.type = perfdata::kTypeTracepoint;
                           event.attr.sample_type |= perfdata::kSampleRaw;
                         },
                     .sample = [&](perfdata::Sample& s) { s.raw = ByteView(raw).first(12); }};
  VerifyOptions verify;
  verify.keeps_raw = true;
  EXPECT_TRUE(Has(Of(leak, leak, verify), FindingKind::kOriginalValue, "SAMPLE", "raw"));
}

// (g): what was anonymised may be again, and holds nothing of either.
TEST_P(VerifyEach, WhatIsAnonymisedTwiceIsClean) {
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

TEST_P(VerifyEach, AnAttrWithAnAddressIsFoundWhereverItStands) {
  const auto of = [&](uint32_t type, auto member, uint64_t value, std::string_view field) {
    const Leak leak = {.event = [&](perfdata::Event& event) {
      event.attr.type = type;
      event.attr.*member = value;
    }};
    const Verdict verdict = Of(leak, leak);
    const bool in_record = Has(verdict, FindingKind::kEventConfig, "HEADER_ATTR", field);
    EXPECT_EQ(in_record, options().container == Container::kPipe);
    EXPECT_TRUE(Has(verdict, FindingKind::kEventConfig, "feature EVENT_DESC", field));
    return Has(verdict, FindingKind::kEventConfig, "attr", field);
  };
  using perfdata::Attr;
  EXPECT_TRUE(of(perfdata::kTypeBreakpoint, &Attr::config1, 0x345678901234, "config1"));
  EXPECT_TRUE(of(30, &Attr::config1, 0x345678901234, "config1"));
  EXPECT_TRUE(of(30, &Attr::config2, 0xffffffff12345678, "config2"));
  EXPECT_TRUE(of(1, &Attr::sig_data, 5, "sig_data"));
}

TEST_P(VerifyEach, HexInTextsIsFound) {
  const auto of = [&](const std::string& word) {
    Leak leak;
    leak.features[static_cast<uint32_t>(Feature::kCmdline)] =
        perfdata::EncodeStringList({"perf", word}, endian());
    const Verdict verdict = Of(leak);
    return std::ranges::any_of(verdict.findings, [](const Finding& f) {
      return f.kind == FindingKind::kOriginalValue && f.field == "words";
    });
  };
  EXPECT_TRUE(of("mem:0x555500000010:rw"));
  EXPECT_TRUE(of("7F0000A00000"));
  EXPECT_TRUE(of("0000555500000010"));
  EXPECT_TRUE(of("ffffffff9a000010+4"));
  EXPECT_TRUE(of("0x555500000"));  // its page
  EXPECT_FALSE(of("555500000"));   // may be anything
  EXPECT_FALSE(of("mem:0x345678901234:rw"));
}

TEST_P(VerifyEach, WhatAMappingMovedByIsFound) {
  for (const uint64_t move : {kMoved.text - Places().text, Places().text - kMoved.text,
                              kMoved.kernel - Places().kernel}) {
    const Leak leak = {
        .more = [&](Recording& r) { r.Add(RecordType::kAux, perfdata::Aux{move, 0, 0}); }};
    EXPECT_TRUE(Has(Of(leak, leak), FindingKind::kOriginalValue, "AUX", "aux_offset"));
  }
}

TEST_P(VerifyEach, TextsOfTheLevelAreFound) {
  const std::vector<std::string> words = {"perf",       "record",          "-g", "-F",
                                          "4000",       "/home/ilse/prog", "-e", "cycles:u",
                                          "--secret-x", "[kernel.kal"};
  Leak leak;
  leak.features[static_cast<uint32_t>(Feature::kCmdline)] =
      perfdata::EncodeStringList(words, endian());
  VerifyOptions options;
  options.level = Level::kIdentity;
  std::vector<std::string> found;
  for (const Finding& f : Of(leak, leak, options).findings) {
    if (f.kind == FindingKind::kText) found.push_back(f.value);
  }
  EXPECT_THAT(found,
              testing::UnorderedElementsAre("\"sekrithost\"", "\"ilse\"", "\"/home/ilse/prog\""));
  options.level = Level::kAddresses;
  options.denied = {"secret"};
  const Verdict denied = Of(leak, leak, options);
  ASSERT_EQ(denied.found, 1);
  EXPECT_EQ(denied.findings[0].kind, FindingKind::kText);
  options.denied = {"secre"};  // a part of a word
  EXPECT_TRUE(Of(leak, leak, options).clean());
}

TEST_P(VerifyEach, OtherSamplesAreFound) {
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

TEST_P(VerifyEach, OtherMappingsAndRecordsAreFound) {
  const Leak map = {.more = [](Recording& r) { r.Map(kPid, kMoved.text + 0x9000, 1, 0, "/x"); }};
  EXPECT_TRUE(Has(Of(map), FindingKind::kDifference, "MMAP", ""));
  const Leak comm = {.more = [](Recording& r) { r.Exec(kPid); }};
  EXPECT_TRUE(Has(Of(comm), FindingKind::kDifference, "COMM", ""));
  EXPECT_TRUE(Of(comm, comm).clean());
}

TEST_P(VerifyEach, ATimeThatIsAnAddressIsFound) {
  const auto fork = [](uint64_t time) {
    return Leak{.more = [time](Recording& r) {
      r.Add(RecordType::kFork, perfdata::Task{11, kPid, 11, kPid, time});
    }};
  };
  EXPECT_TRUE(Has(Of(fork(Places().text), fork(20)), FindingKind::kOriginalValue, "FORK", "time"));
  // That is when it was, whatever it looks like.
  EXPECT_TRUE(Of(fork(Places().text), fork(Places().text)).clean());
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

// ---- an original address in every field of every record and feature ----

// Where something may be planted: all of `record`.`field` that is not looked over on purpose.
struct Spot {
  std::string record;
  FieldSpan span;
  uint64_t file_offset = 0;
};

class Spots : public perfdata::RecordSink {
 public:
  explicit Spots(const Bytes& bytes) : source_(bytes), reader_(*perfdata::Reader::Open(source_)) {
    EXPECT_TRUE(reader_->ReadAll(*this));
  }
  Status OnRecord(const perfdata::RawRecord& raw) override {
    const Endian endian = reader_->endian();
    const auto event = reader_->events().IndexOf(raw, endian);
    const perfdata::Attr* attr = event ? &reader_->events().events()[*event].attr : nullptr;
    FieldSpans fields;
    perfdata::Sample sample;
    if (raw.record_type() == RecordType::kSample) {
      EXPECT_TRUE(FindFieldsOfSample(raw, *attr, endian, sample, fields));
    } else {
      EXPECT_TRUE(FindFields(raw, attr, endian, 0, fields));
    }
    for (const FieldSpan& span : fields.spans()) {
      if (span.info == nullptr) continue;
      all.push_back({perfdata::RecordTypeName(raw.type), span, raw.file_offset});
    }
    return {};
  }
  std::vector<Spot> all;

 private:
  MemorySource source_;
  std::unique_ptr<perfdata::Reader> reader_;
};

TEST_P(VerifyEach, AnOriginalAddressIsFoundInEveryFieldOfEveryRecord) {
  const Bytes in = Everything(options());
  Options anonymize;
  anonymize.container = options().container;
  const Bytes clean = fake::AnonymizedBytes(in, anonymize);
  const auto good = VerifyBytes(in, clean);
  ASSERT_TRUE(good);
  ASSERT_TRUE(good->clean()) << TextOf(*good);

  size_t planted = 0;
  for (const Spot& spot : Spots(clean).all) {
    const FieldSpan& span = spot.span;
    const bool is_bytes = span.form == FieldForm::kBytes;
    if (span.end - span.begin < 8 || (!is_bytes && span.width != 8)) continue;
    // Process numbers of 64 bits are looked over; see verify_bytes.h.
    if (span.info->sensitivity == perfdata::Sensitivity::kPid) continue;
    for (const bool swapped : {false, true}) {
      if (swapped && span.info->sensitivity == perfdata::Sensitivity::kTime) continue;
      Bytes out = clean;
      const size_t at = span.end - 8;
      const Endian order =
          swapped == (endian() == Endian::kLittle) ? Endian::kBig : Endian::kLittle;
      StoreUnaligned(out.data() + spot.file_offset + at, Places().text + 0x10, order);
      ++planted;
      VerifyOptions verify;
      verify.findings_kept = 1000;
      const auto verdict = VerifyBytes(in, out, verify);
      if (!verdict) continue;  // it damages the recording: nothing is given away either
      const bool found = std::ranges::any_of(verdict->findings, [&](const Finding& f) {
        const bool is_sample_time = spot.record == "SAMPLE" && span.info->name == "time";
        return f.file_offset == spot.file_offset && (f.offset == at || is_sample_time);
      });
      EXPECT_TRUE(found) << spot.record << " " << span.info->name << (swapped ? " swapped" : "")
                         << "\n"
                         << TextOf(*verdict);
    }
  }
  EXPECT_GT(planted, 100);
}

// Between the records of a file: its attrs, and every byte of its features.
TEST(Verify, AnOriginalAddressIsFoundInAttrsAndFeatures) {
  const perfdata::WriterOptions options;
  const Bytes in = Everything(options);
  const Bytes clean = fake::AnonymizedBytes(in);
  MemorySource source(clean);
  const auto places = (*perfdata::Reader::Open(source))->places();
  const uint64_t config = places->attrs_offset + 8;
  std::vector<size_t> spots = {config, config + 48};  // config1
  const size_t features = places->data_offset + places->data_size;
  const std::string_view text = AsText(clean).substr(features);
  for (const std::string_view word : {"x86_64", "a word", "/bin/prog"}) {
    spots.push_back(features + text.find(word) + 1);
  }
  for (const size_t at : spots) {
    for (const Endian order : {Endian::kLittle, Endian::kBig}) {
      Bytes out = clean;
      StoreUnaligned(out.data() + at, Places().text + 0x10, order);
      const auto verdict = VerifyBytes(in, out);
      ASSERT_TRUE(verdict);
      EXPECT_TRUE(std::ranges::any_of(verdict->findings,
                                      [&](const Finding& f) {
                                        return f.kind == FindingKind::kOriginalValue &&
                                               f.file_offset + f.offset == at;
                                      }))
          << at << "\n"
          << TextOf(*verdict);
    }
  }
}

// ---- what looks like a leak and is none ----

TEST(Verify, TimesAndThreadNumbersAreNoAddresses) {
  const auto make = [](const Places& at) {
    Recording out({SomeEvent(0)});
    out.Map(kPid, at.libc, 0x40000000, 0, "/lib/libc.so.6");
    perfdata::Sample sample;
    sample.ip = at.libc;
    sample.pid = 0xa00000;
    sample.tid = 0x7f00;  // side by side they are 0x7f00'00a00000
    for (int i = 0; i < 100; ++i) out.AddSample(sample);
    out.Add(RecordType::kFork, perfdata::Task{1, 2, 1, 2, Places().libc + 5});  // after 38 hours
    out.Add(RecordType::kFork, perfdata::Task{1, 2, 1, 2, (Places().libc + 5) << 8});
    return out.Finish();
  };
  const auto verdict = VerifyBytes(make({}), make(kMoved));
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->clean()) << TextOf(*verdict);
}

// Of programs at fixed low addresses: a count may be one of them, an address or hex may not.
TEST(Verify, SmallNumbersAreCounts) {
  const auto make = [](uint64_t text, uint64_t ip, const std::string& word) {
    Recording out({SomeEvent(perfdata::kSamplePeriod)});
    out.Map(kPid, text, 0x100000, 0, "/bin/prog");
    perfdata::Sample sample;
    sample.pid = kPid;
    sample.ip = ip;
    sample.period = 0x401000;
    out.AddSample(sample);
    return out.Finish({{static_cast<uint32_t>(Feature::kCmdline),
                        perfdata::EncodeStringList({word}, Endian::kLittle)}});
  };
  const Bytes in = make(0x400000, 0x401234, "");
  const auto found = [&](uint64_t ip, const std::string& word) {
    return VerifyBytes(in, make(0x123456700000, ip, word))->found;
  };
  EXPECT_EQ(found(0x123456701234, "20230415"), 0);
  EXPECT_EQ(found(0x401234, ""), 2);  // outside, and an original
  EXPECT_EQ(found(0x123456701234, "bp:0x401234"), 1);
  EXPECT_EQ(found(0x123456701234, "0000000000401234"), 1);
}

// Of machines of 32 bits: of many mappings some stay by chance, and all do if nothing moves them.
TEST(Verify, In32BitsSomeMappingsStayByChance) {
  const auto make = [](uint64_t moved, uint64_t stays, uint64_t pgoff) {
    Recording out({SomeEvent(0)});
    for (uint64_t i = 0; i < 20; ++i) {
      const uint64_t addr = 0x40001000 + (i * 0x101000);
      out.Map(kPid, i < stays ? addr : addr + moved, 0x1000, 0, "/lib/" + std::to_string(i));
    }
    out.Add(RecordType::kAux, perfdata::Aux{pgoff, 0, 0});
    return out.Finish({{static_cast<uint32_t>(Feature::kArch),
                        perfdata::EncodeString("armv7l", Endian::kLittle)}});
  };
  const auto found = [&](uint64_t stays, uint64_t pgoff) {
    return VerifyBytes(make(0, 0, 0), make(0x20000000, stays, pgoff))->found;
  };
  EXPECT_EQ(found(0, 0), 0);
  EXPECT_EQ(found(2, 0), 0);
  EXPECT_EQ(found(3, 0), 3);
  EXPECT_EQ(found(20, 0), 20);
  EXPECT_EQ(found(0, 0x40001000), 1);  // where one was, in a number that is no address
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
