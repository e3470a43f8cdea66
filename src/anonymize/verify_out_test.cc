// Verification kinds (a), (c) and (d): addresses, payload and attrs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "anonymize/fake_leaks.h"
#include "anonymize/verify.h"

namespace stackreel::anonymize {
namespace {

using namespace fake;  // NOLINT(google-build-using-namespace): what tests of verification are made
                       // of

class VerifyOutEach : public VerifyEach {};
INSTANTIATE_TEST_SUITE_P(All, VerifyOutEach, kEach);

TEST_P(VerifyOutEach, AnAddressNowhereIsFound) {
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
TEST_P(VerifyOutEach, BehindAMappingIsOneByte) {
  const auto ip = [this](uint64_t address) {
    return Of({.sample = [=](perfdata::Sample& s) { s.ip = address; }});
  };
  EXPECT_TRUE(ip(kMoved.text + 0x4000).clean());
  EXPECT_FALSE(ip(kMoved.text + 0x4001).clean());
}

TEST_P(VerifyOutEach, PayloadOfSamplesIsFound) {
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

// Whatever else it says, of the registers and bytes that it asks for there are none.
TEST_P(VerifyOutEach, AnAttrThatAsksForPayloadIsFound) {
  using perfdata::Attr;
  const auto asks = [&](const std::function<void(Attr&)>& set, std::string_view field) {
    const Leak leak = {.event = [&](perfdata::Event& event) { set(event.attr); }};
    const bool is_file = std::get<1>(GetParam()) == Container::kFile;
    return Has(Of(leak, leak), FindingKind::kEventConfig, is_file ? "attr" : "HEADER_ATTR", field);
  };
  EXPECT_TRUE(asks([](Attr& attr) { attr.sample_regs_user = 1; }, "sample_regs_user"));
  EXPECT_TRUE(asks([](Attr& attr) { attr.sample_regs_intr = 1; }, "sample_regs_intr"));
  EXPECT_TRUE(asks([](Attr& attr) { attr.sample_stack_user = 8; }, "sample_stack_user"));
  EXPECT_TRUE(asks([](Attr& attr) { attr.aux_sample_size = 8; }, "aux_sample_size"));
}

TEST_P(VerifyOutEach, BytesBehindARecordAreFound) {
  constexpr uint64_t kExtra = 16;
  ByteWriter auxtrace(endian());
  auxtrace.U32(static_cast<uint32_t>(RecordType::kAuxtrace));
  auxtrace.U16(0);
  auxtrace.U16(48);
  auxtrace.U64(kExtra);
  for (int i = 0; i < 4; ++i) auxtrace.U64(0);  // offset, reference, idx, tid, cpu, reserved
  auxtrace.U64(0x1122334455667788);
  auxtrace.U64(0x1122334455667788);
  const Leak leak = {.more = [&](Recording& r) { r.AddBytes(auxtrace.view()); }};
  EXPECT_TRUE(Has(Of(leak, leak), FindingKind::kPayload, "AUXTRACE", ""));
}

TEST_P(VerifyOutEach, PayloadOfRecordsIsFound) {
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

TEST_P(VerifyOutEach, PayloadOfFeaturesIsFound) {
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

TEST_P(VerifyOutEach, OfTracingDataFormatsMayStay) {
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

TEST_P(VerifyOutEach, RawDataMayBeKeptButIsSearched) {
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

TEST_P(VerifyOutEach, AnAttrWithAnAddressIsFoundWhereverItStands) {
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

}  // namespace
}  // namespace stackreel::anonymize
